import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import type { XAxis } from './series';

export type Episode = components['schemas']['EpisodeOut'];
export type Trace = components['schemas']['Trace'];
export type Evaluation = components['schemas']['EvaluationOut'];
export type Checkpoint = components['schemas']['CheckpointOut'];
export type Video = components['schemas']['VideoOut'];
export type LogLine = components['schemas']['LogLineOut'];

const path = (run: string) => ({ run_id: run });

/** A run's recorded episodes; with `maxAgentSteps` those that ended at this agent step or before. */
export const episodesQuery = (run: string, sort: string, maxAgentSteps?: number) =>
  infiniteQueryOptions({
    queryKey: keys.episodes(run, sort, maxAgentSteps),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/runs/{run_id}/episodes', {
          params: {
            path: path(run),
            query: { sort, limit: 50, cursor: pageParam, max_agent_steps: maxAgentSteps ?? null },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** The agent steps of a range; null for all. */
const stepsIn = (range: readonly [number, number] | null) =>
  range && {
    min_agent_steps: Math.max(0, Math.ceil(range[0])),
    max_agent_steps: Math.max(0, Math.floor(range[1])),
  };

/** At most `n` recorded episodes, spread over the agent steps of a range, or of the run. */
export const spreadEpisodesQuery = (run: string, n: number, range: readonly [number, number] | null) =>
  queryOptions({
    queryKey: keys.episodes(run, 'spread', n, ...(range ?? [])),
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          api.GET('/api/v1/runs/{run_id}/episodes', {
            params: { path: path(run), query: { spread: n, ...stepsIn(range) } },
            signal,
          }),
        )
      ).items,
    placeholderData: (previous) => previous,
    meta: { slow: true },
  });

export type Symptom = components['schemas']['SymptomOut'];

/** What is wrong with a run by its own metrics. */
export const symptomsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'series', 'symptoms'),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/symptoms', { params: { path: path(run) }, signal })),
    meta: { slow: true },
  });

export type MetricChange = components['schemas']['MetricChange'];

/** A range of an axis. */
export type RangeOfX = { x: XAxis; from: number; to: number };

/** The metrics that changed most in a range of x against the range before. */
export const changesQuery = (run: string, { x, from, to }: RangeOfX) =>
  queryOptions({
    queryKey: keys.runResource(run, 'series', 'changes', x, from, to),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/v1/runs/{run_id}/changes', {
          params: { path: path(run), query: { x, range_from: from, range_to: to } },
          signal,
        }),
      ),
  });

export const episodeQuery = (run: string, id: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'video', 'episode', id),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/episodes/{episode_id}', { params: { path: { episode_id: id } }, signal })),
  });

/** A recorded episode never changes, so its trace is cached. */
export const readTrace = (id: string, signal: AbortSignal): Promise<Trace> =>
  unwrap(api.GET('/api/v1/episodes/{episode_id}/trace', { params: { path: { episode_id: id } }, signal }));

export const evaluationsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.evaluations(run),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/runs/{run_id}/evaluations', { params: { path: path(run) }, signal })))
        .items,
  });

export type Protocol = components['schemas']['ProtocolOut'];

/** The protocols under which a run's checkpoints can be evaluated. */
export const protocolsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'protocols'),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/evaluations/protocols', { params: { path: path(run) }, signal })),
  });

type EvaluationRequest = components['schemas']['EvaluationRequest'];

export const requestEvaluation = (run: string, body: EvaluationRequest) =>
  unwrap(api.POST('/api/v1/runs/{run_id}/evaluations', { params: { path: path(run) }, body }));

export const checkpointsQuery = (run: string) =>
  infiniteQueryOptions({
    queryKey: keys.runResource(run, 'checkpoints'),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/runs/{run_id}/checkpoints', {
          params: { path: path(run), query: { cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

export type ConfigChange = components['schemas']['SettingsOut'];

/** The changes made to a run's config while it trained, latest first. */
export const configChangesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'settings'),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/runs/{run_id}/settings', { params: { path: { run_id: run } }, signal })))
        .items,
  });

/** Changes when there may be new marks on the run's learning curve, such as evaluations; asks the service nothing. */
export const marksQuery = (run: string) =>
  queryOptions({
    queryKey: keys.marks(run),
    queryFn: () => Date.now(),
    initialData: 0,
    staleTime: Infinity,
  });

export type StepNote = components['schemas']['StepNoteOut'];
type StepNoteFields = components['schemas']['StepNoteRequest'];

/** The notes at steps of a run, in the order of training. */
export const stepNotesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'step_notes'),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/runs/{run_id}/step-notes', { params: { path: path(run) }, signal })))
        .items,
  });

export const addStepNote = (run: string, body: StepNoteFields) =>
  unwrap(api.POST('/api/v1/runs/{run_id}/step-notes', { params: { path: path(run) }, body }));

const notePath = (run: string, note: string) => ({ params: { path: { run_id: run, note_id: note } } });

export const changeStepNote = (run: string, note: string, body: StepNoteFields) =>
  unwrap(api.PATCH('/api/v1/runs/{run_id}/step-notes/{note_id}', { ...notePath(run, note), body }));

export const deleteStepNote = (run: string, note: string) =>
  unwrap(api.DELETE('/api/v1/runs/{run_id}/step-notes/{note_id}', notePath(run, note)));

type ConfigValues = components['schemas']['SettingsRequest']['config'];

export const changeConfig = (run: string, config: ConfigValues) =>
  unwrap(
    api.PATCH('/api/v1/runs/{run_id}/settings', { params: { path: { run_id: run } }, body: { config } }),
  );

/** At most `n` videos that can be watched, spread over the agent steps of a range, or of the run. */
export const spreadVideosQuery = (run: string, n: number, range: readonly [number, number] | null) =>
  queryOptions({
    queryKey: keys.sentVideos(run, 'spread', n, ...(range ?? [])),
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          api.GET('/api/v1/runs/{run_id}/videos', {
            params: { path: path(run), query: { spread: n, ...stepsIn(range) } },
            signal,
          }),
        )
      ).items,
    placeholderData: (previous) => previous,
    meta: { slow: true },
  });

export const videoQuery = (run: string, id: string) =>
  queryOptions({
    queryKey: keys.sentVideos(run, 'video', id),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/videos/{video_id}', { params: { path: { video_id: id } }, signal })),
  });

/** The videos that the script of an external run has sent. */
export const videosQuery = (run: string) =>
  infiniteQueryOptions({
    queryKey: keys.sentVideos(run),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/runs/{run_id}/videos', {
          params: { path: path(run), query: { limit: 50, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
