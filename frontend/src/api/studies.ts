import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from '@tanstack/react-query';
import { served } from '@/lib/base';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { type Answer, type Figure, wholeFigure } from './tails';

export type Paper = components['schemas']['PaperOut'];
export type PaperItem = components['schemas']['PaperItem'];
export type Study = components['schemas']['StudyOut'];
export type StudyDetail = components['schemas']['StudyDetail'];
export type StudyEstimate = components['schemas']['StudyEstimate'];
export type StudyDraft = components['schemas']['StudyDraft'];
export type StudyTable = components['schemas']['TableOut'];
export type StudyExtension = components['schemas']['StudyExtension'];
export type StudyChanges = components['schemas']['ExperimentChanges'];
export type Scale = components['schemas']['ScaleOut']['scale'];
type StudyFigureOut = components['schemas']['StudyFigureOut'];

/** A figure or a table of a study, with what it says. */
export type StudyFigure = Omit<StudyFigureOut, 'figure'> & { figure: Figure | null };

/** A study's event reports what it starts; no event reports the progress of its runs in between. */
const REFETCH_MS = 5_000;

const isRunning = (study: { state: string } | undefined): boolean => study?.state === 'running';

/** The papers with their figures and tables, and the latest studies of each. */
export const papersQuery = queryOptions({
  queryKey: keys.papers(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/papers', { signal }))).items,
  refetchInterval: ({ state: { data } }) =>
    data?.some(({ items }) => items.some(({ studies }) => studies.some(isRunning))) ? REFETCH_MS : false,
});

const path = (id: string) => ({ params: { path: { study_id: id } } });

/** A study that has ended sends no more events; its runs may go on. */
const FOLLOWS_RUNS = { dependsOn: () => [['run', null, []]] };

/** A study with its definition and its progress. */
export const studyQuery = (id: string) =>
  queryOptions({
    queryKey: keys.study(id),
    meta: FOLLOWS_RUNS,
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/studies/{study_id}', { ...path(id), signal })),
    refetchInterval: ({ state: { data } }) => (isRunning(data) ? REFETCH_MS : false),
  });

/** The cells of a study with their runs, page by page. */
export const cellsQuery = (study: StudyDetail) =>
  infiniteQueryOptions({
    queryKey: keys.study(study.id, 'cells'),
    meta: FOLLOWS_RUNS,
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/studies/{study_id}/cells', {
          params: { path: { study_id: study.id }, query: { cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: isRunning(study) ? REFETCH_MS : false,
  });

type FigureRequest = { theme: 'light' | 'dark'; width: number };

/** A figure of a study as it is now. */
export async function fetchStudyFigure(
  study: string,
  figure: string,
  request: FigureRequest,
  signal: AbortSignal,
): Promise<StudyFigure> {
  const params = { path: { study_id: study, figure_id: figure }, query: { ...request, embedded: true } };
  const drawn = (await unwrap<unknown>(
    api.GET('/api/v1/studies/{study_id}/figures/{figure_id}', { params, signal }),
  )) as StudyFigureOut;
  // OpenAPI types plotly's data and layout as plain objects.
  return { ...drawn, figure: drawn.figure ? wholeFigure(drawn.figure as unknown as Answer) : null };
}

/** A figure of a study, drawn anew while its runs train. */
export const studyFigureQuery = (study: StudyDetail, figure: string, request: FigureRequest) =>
  queryOptions({
    queryKey: keys.study(study.id, 'figure', figure, request),
    meta: FOLLOWS_RUNS,
    queryFn: ({ signal }) => fetchStudyFigure(study.id, figure, request, signal),
    refetchInterval: isRunning(study) ? REFETCH_MS : false,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });

/** Environment -> protocol with a start set. */
export type Starts = Record<string, string>;

/** What a figure or table of a paper would cost at a scale. */
export const estimateQuery = (item: string, scale: Scale, starts: Starts) =>
  queryOptions({
    queryKey: keys.estimate({ item, scale, starts }),
    queryFn: ({ signal }) =>
      unwrap(api.POST('/api/v1/studies/estimate', { body: { item, scale, starts }, signal })),
    staleTime: 30_000,
    retry: false,
  });

/** Starts a figure or table of a paper; requests with the same key start it once. */
export const startStudy = (item: string, scale: Scale, starts: Starts, key: string): Promise<Study> =>
  unwrap(api.POST('/api/v1/studies', { body: { item, scale, starts }, headers: { 'Idempotency-Key': key } }));

/** What a study is made of: runs by their ids, or those of a sweep. */
export type StudySource = { runs: readonly string[] } | { sweep: string };

/** The study that runs form, what exists of it, and what it would cost. */
export const draftQuery = (source: StudySource) =>
  queryOptions({
    queryKey: keys.estimate({ draft: source }),
    queryFn: ({ signal }) =>
      unwrap(
        api.POST('/api/v1/studies/draft', {
          body: 'runs' in source ? { runs: [...source.runs] } : source,
          signal,
        }),
      ),
    // Runs end meanwhile: each dialog shows what exists now.
    gcTime: 0,
    retry: false,
  });

/** Starts a custom study; requests with the same key start it once. */
export const startDraft = ({ study }: StudyDraft, name: string, key: string): Promise<Study> =>
  unwrap(
    api.POST('/api/v1/studies', {
      body: { study, name } as components['schemas']['StudyRequest'],
      headers: { 'Idempotency-Key': key },
    }),
  );

/** The latest studies of which a run fills a cell. */
export const studiesOfRunQuery = (run: string) =>
  queryOptions({
    queryKey: keys.papers('of run', run),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/studies', { params: { query: { run, limit: 5 } }, signal })),
  });

/** Custom studies, latest first, page by page. */
export const customStudiesQuery = infiniteQueryOptions({
  queryKey: keys.papers('custom'),
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET('/api/v1/studies', {
        params: { query: { custom: true, limit: 20, cursor: pageParam } },
        signal,
      }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
  refetchInterval: ({ state: { data } }) =>
    data?.pages.some(({ items }) => items.some(isRunning)) ? REFETCH_MS : false,
});

/** The studies made of an item of a paper, latest first, page by page. */
export const studiesOfQuery = (definition: string) =>
  infiniteQueryOptions({
    queryKey: keys.papers('of', definition),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/studies', {
          params: { query: { definition, limit: 20, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** The address of everything of a study as one archive. */
export const exportUrl = (id: string): string => served(`/api/v1/studies/${id}/export`);

/** The actions on one study. */
export const studyActions = {
  stop: (id: string) => unwrap(api.POST('/api/v1/studies/{study_id}/stop', path(id))),
  retry: (id: string) => unwrap(api.POST('/api/v1/studies/{study_id}/retry', path(id))),
  extend: (id: string, body: StudyExtension) =>
    unwrap(api.POST('/api/v1/studies/{study_id}/extend', { ...path(id), body })),
  change: (id: string, body: StudyChanges) =>
    unwrap(api.PATCH('/api/v1/studies/{study_id}', { ...path(id), body })),
  delete: (id: string) => unwrap(api.DELETE('/api/v1/studies/{study_id}', path(id))),
};

/** Runs a change of a study, then refetches it, the papers and the runs. */
export function useStudyMutation<T>(id: string, change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(
        [keys.study(id), keys.papers(), keys.allRuns()].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      ),
  });
}
