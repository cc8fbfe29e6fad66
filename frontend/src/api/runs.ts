import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
  type InfiniteData,
  type QueryClient,
} from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components, paths } from './generated';
import { keys } from './keys';
import { asProblem } from './problem';
import { DEFAULT_PROJECT } from '@/lib/project';

export type Run = components['schemas']['RunOut'];
export type RunDetail = components['schemas']['RunDetail'];
export type RunPage = components['schemas']['RunPage'];
export type CommandFields = components['schemas']['CommandFields'];
export type RunFields = components['schemas']['RunFields'];
export type StopSpec = components['schemas']['StopSpec'];
export type ResumeRequest = components['schemas']['ResumeRequest'];
export type RunsQuery = Omit<NonNullable<paths['/api/v1/runs']['get']['parameters']['query']>, 'cursor'>;

const PAGE_SIZE = 100;
const QUEUE_INTERVAL_MS = 5000;

/** Runs, page by page. */
export const runsQuery = (query: RunsQuery) =>
  infiniteQueryOptions({
    queryKey: keys.runs(query),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/runs', {
          params: { query: { spec: true, limit: PAGE_SIZE, ...query, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** Every project that a run is filed under. */
export const projectsQuery = queryOptions({
  queryKey: keys.projects(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/runs/projects', { signal }))).items,
  staleTime: 15_000,
});

/** One run with its attempts and its lineage. */
export const runQuery = (id: string) =>
  queryOptions({
    queryKey: keys.run(id),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}', { params: { path: { run_id: id } }, signal })),
  });

/** A process of an external run's script, with its packages, its changes and what it printed last. */
export const processQuery = (id: string, source: string) =>
  queryOptions({
    queryKey: keys.runResource(id, 'processes', source),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/v1/runs/{run_id}/processes/{source}', {
          params: { path: { run_id: id, source } },
          signal,
        }),
      ),
  });

/** The runs with these ids in a single page; unknown ids are left out. */
export const runsByIdQuery = (ids: readonly string[]) => ({
  ...runsQuery({ id: [...ids], archived: 'all', limit: 100 }),
  enabled: ids.length > 0,
  placeholderData: keepPreviousData,
});

export type RunList = InfiniteData<RunPage, string | null>;
/** What queries of runs hold: pages of a list, or runs to choose from. */
export type CachedRuns = RunList | readonly Run[];

/** The pages of a list; none of runs to choose from. */
export const pagesOf = (runs: CachedRuns | undefined): RunList['pages'] =>
  runs && 'pages' in runs ? runs.pages : [];

/** Replaces runs in every cached list that contains them. */
export function updateRunsInLists(client: QueryClient, runs: readonly Run[]): void {
  const changed = new Map(runs.map((run) => [run.id, run]));
  client.setQueriesData<CachedRuns>({ queryKey: keys.allRuns() }, (lists) => {
    if (!lists || !('pages' in lists)) return lists;
    if (!lists.pages.some((page) => page.items.some(({ id }) => changed.has(id)))) return lists;
    const pages = lists.pages.map((page) => ({
      ...page,
      items: page.items.map((item) => changed.get(item.id) ?? item),
    }));
    return { ...lists, pages };
  });
}

/** Fetches runs by their ids, a page at a time, and replaces them in every cached list that contains them. */
export async function refetchRunsInLists(client: QueryClient, ids: readonly string[]): Promise<void> {
  for (let start = 0; start < ids.length; start += PAGE_SIZE) {
    const id = ids.slice(start, start + PAGE_SIZE);
    const query = { id, archived: 'all' as const, spec: true, limit: PAGE_SIZE };
    const page = await unwrap(api.GET('/api/v1/runs', { params: { query } }));
    updateRunsInLists(client, page.items);
  }
}

/** A queued run's place in the queue, which changes with other runs. */
export const queueQuery = (id: string) =>
  queryOptions({
    queryKey: keys.runResource(id, 'queue'),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/queue', { params: { path: { run_id: id } }, signal })),
    refetchInterval: QUEUE_INTERVAL_MS,
  });

export type RunChanges = components['schemas']['RunChanges'];
/** What an editor has read of a run's fields. */
export type RunExpectation = components['schemas']['RunExpectation'];

/** Changes a run's name, notes, tags, group, project or priority, and shows them everywhere immediately. */
export function useRunChange(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RunChanges) => unwrap(api.PATCH('/api/v1/runs/{run_id}', { ...runPath(id), body })),
    onSuccess: (run) => {
      client.setQueryData(keys.run(id), (detail: RunDetail | undefined) => detail && { ...detail, ...run });
      updateRunsInLists(client, [run]);
    },
    onError: (problem) => {
      // Somebody else has changed it: show what is stored now.
      if (asProblem(problem).status === 409) void client.invalidateQueries({ queryKey: keys.run(id) });
    },
  });
}

const runPath = (id: string) => ({ params: { path: { run_id: id } } });

/** The actions on one run. */
export const runActions = {
  stop: (id: string) => unwrap(api.POST('/api/v1/runs/{run_id}/stop', runPath(id))),
  kill: (id: string) => unwrap(api.POST('/api/v1/runs/{run_id}/kill', runPath(id))),
  checkpoint: (id: string) => unwrap(api.POST('/api/v1/runs/{run_id}/checkpoint', runPath(id))),
  resume: (id: string, body: ResumeRequest) =>
    unwrap(api.POST('/api/v1/runs/{run_id}/resume', { ...runPath(id), body })),
  archive: (id: string, archived: boolean) =>
    unwrap(api.POST('/api/v1/runs/{run_id}/archive', { ...runPath(id), body: { archived } })),
  delete: (id: string) =>
    unwrap(
      api.DELETE('/api/v1/runs/{run_id}', { params: { path: { run_id: id }, query: { restorable: true } } }),
    ),
  restore: (id: string) => unwrap(api.POST('/api/v1/runs/{run_id}/restore', runPath(id))),
};

export type RunEstimate = components['schemas']['RunEstimate'];

/** What the runs of a request would need, and why no host can run them well. */
export const estimateQuery = (fields: RunFields) =>
  queryOptions({
    queryKey: keys.estimate(fields),
    queryFn: ({ signal }) => unwrap(api.POST('/api/v1/runs/estimate', { body: fields, signal })),
    placeholderData: keepPreviousData,
  });

/** Creates one run per combination of values and seed; requests with the same key create them once. */
export async function createRuns(fields: RunFields | CommandFields, key?: string): Promise<Run[]> {
  const headers = key === undefined ? {} : { 'Idempotency-Key': key };
  return (await unwrap(api.POST('/api/v1/runs', { body: fields, headers }))).items;
}

/** Runs a change, then refetches the runs and everything that belongs to them. */
export function useRunMutation<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      client.invalidateQueries({
        predicate: ({ queryKey: [kind, ids] }) => kind === 'run' && !Array.isArray(ids),
      }),
  });
}

export type ForkRequest = components['schemas']['ForkRequest'];

/** Creates a run that starts from a checkpoint of its parent; requests with the same key create it once. */
export const forkRun = (parent: string, body: ForkRequest, key: string): Promise<Run> =>
  unwrap(
    api.POST('/api/v1/runs/{run_id}/fork', {
      params: { path: { run_id: parent } },
      body,
      headers: { 'Idempotency-Key': key },
    }),
  );

export type BulkAction = components['schemas']['BulkRequest']['action'];
export type BulkResult = components['schemas']['BulkOut'];

/** The runs of a bulk action: given ones, or those that a filter matches. */
export type BulkTarget = { ids: readonly string[] } | { filter: string; expected: number };

/** What some bulk actions need: the tags of `tag` and `untag`, the priority of `prioritise`, the project of `move`. */
export type BulkDetails = { tags: string[] } | { priority: number } | { project: string };

/** Runs of one request; more are changed in several. */
const BULK_SIZE = 500;

/** Reports what an action would do to each run, without doing it. */
export const previewBulk = (
  action: BulkAction,
  target: BulkTarget,
  details?: BulkDetails,
): Promise<BulkResult> => sendBulk(action, target, details, true);

/** Applies an action to many runs. */
export const applyBulk = (
  action: BulkAction,
  target: BulkTarget,
  details?: BulkDetails,
): Promise<BulkResult> => sendBulk(action, target, details, false);

async function sendBulk(
  action: BulkAction,
  target: BulkTarget,
  details: BulkDetails | undefined,
  dryRun: boolean,
): Promise<BulkResult> {
  const rest = {
    action,
    dry_run: dryRun,
    restorable: action === 'delete',
    ...details,
  };
  if ('ids' in target) {
    const results: BulkResult[] = [];
    for (let start = 0; start < target.ids.length; start += BULK_SIZE) {
      const body = { ...rest, ids: target.ids.slice(start, start + BULK_SIZE) };
      results.push(await unwrap(api.POST('/api/v1/runs/bulk', { body })));
    }
    return merged(results);
  }
  const { filter, expected } = target;
  let result = await unwrap(
    api.POST('/api/v1/runs/bulk', { body: { ...rest, filter, expected, limit: BULK_SIZE } }),
  );
  // By id, since the action may take runs out of what the filter matches.
  while (result.next_after) {
    const body = { ...rest, filter, limit: BULK_SIZE, after: result.next_after };
    const next = await unwrap(api.POST('/api/v1/runs/bulk', { body }));
    result = { ...merged([result, next]), next_after: next.next_after ?? null };
  }
  return result;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

/** What several requests of one action have done. */
const merged = (results: readonly BulkResult[]): BulkResult => ({
  items: results.flatMap(({ items }) => items),
  n_done: sum(results.map(({ n_done }) => n_done)),
  n_refused: sum(results.map(({ n_refused }) => n_refused)),
  next_after: null,
});

/** Takes back an action on the runs that it was done to. */
export async function undoBulk(action: BulkAction, { items }: BulkResult): Promise<void> {
  const done = items.filter((item) => item.done);
  const inverse = INVERSE[action];
  if (!inverse) return;
  if (inverse === 'move') {
    const byProject = Map.groupBy(done, ({ former_project }) => former_project ?? DEFAULT_PROJECT);
    for (const [project, items] of byProject)
      await applyBulk('move', { ids: items.map(({ id }) => id) }, { project });
    return;
  }
  const byTags = new Map<string, string[]>();
  for (const { id, changed_tags } of done) {
    const key = JSON.stringify(changed_tags);
    byTags.set(key, [...(byTags.get(key) ?? []), id]);
  }
  for (const [key, ids] of byTags) {
    const tags = JSON.parse(key) as string[];
    const needsTags = inverse === 'tag' || inverse === 'untag';
    if (needsTags && tags.length === 0) continue;
    await applyBulk(inverse, { ids }, needsTags ? { tags } : undefined);
  }
}

export type DeletedRun = components['schemas']['DeletedRunOut'];

/** The deleted runs that can be restored, those deleted last first. */
export const deletedRunsQuery = infiniteQueryOptions({
  queryKey: keys.deletedRuns(),
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET('/api/v1/runs/deleted', { params: { query: { limit: PAGE_SIZE, cursor: pageParam } }, signal }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

/** Restores deleted runs, and returns what was done with each. */
export const restoreRuns = async (ids: readonly string[]): Promise<BulkResult['items']> =>
  (await applyBulk('restore', { ids })).items;

const INVERSE: Partial<Record<BulkAction, BulkAction>> = {
  archive: 'unarchive',
  unarchive: 'archive',
  delete: 'restore',
  tag: 'untag',
  untag: 'tag',
  move: 'move',
};

export const canUndo = (action: BulkAction): boolean => action in INVERSE;
