import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
  type InfiniteData,
  type QueryClient,
} from '@tanstack/react-query';
import { api, take } from './client';
import type { components, paths } from './generated';
import { keys } from './keys';

export type Run = components['schemas']['RunOut'];
export type RunDetail = components['schemas']['RunDetail'];
export type RunPage = components['schemas']['RunPage'];
export type RunFields = components['schemas']['RunFields'];
export type StopSpec = components['schemas']['StopSpec'];
export type RunsQuery = Omit<NonNullable<paths['/api/v1/runs']['get']['parameters']['query']>, 'cursor'>;

const PAGE = 100;

/** A list of runs that fetches further pages as they come into view. */
export const runsQuery = (query: RunsQuery) =>
  infiniteQueryOptions({
    queryKey: keys.runs(query),
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET('/api/v1/runs', { params: { query: { limit: PAGE, ...query, cursor: pageParam } }, signal }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** One run with its history. */
export const runQuery = (id: string) =>
  queryOptions({
    queryKey: keys.run(id),
    queryFn: ({ signal }) =>
      take(api.GET('/api/v1/runs/{run_id}', { params: { path: { run_id: id } }, signal })),
  });

/** Chosen runs, in one answer however many they are; those that are not there are left out. */
export const chosenRunsQuery = (ids: readonly string[]) => ({
  ...runsQuery({ id: [...ids], archived: 'all', limit: 100 }),
  enabled: ids.length > 0,
  placeholderData: keepPreviousData,
});

export type RunList = InfiniteData<RunPage, string | null>;

/** Puts a run's new row into every list that shows it. */
export function patchLists(client: QueryClient, run: Run): void {
  client.setQueriesData<RunList>({ queryKey: keys.allRuns() }, (lists) => {
    if (!lists?.pages.some((page) => page.items.some(({ id }) => id === run.id))) return lists;
    const pages = lists.pages.map((page) => ({
      ...page,
      items: page.items.map((item) => (item.id === run.id ? run : item)),
    }));
    return { ...lists, pages };
  });
}

const of = (id: string) => ({ params: { path: { run_id: id } } });

/** Everything that may be done to a run. */
export const runActions = {
  stop: (id: string) => take(api.POST('/api/v1/runs/{run_id}/stop', of(id))),
  kill: (id: string) => take(api.POST('/api/v1/runs/{run_id}/kill', of(id))),
  resume: (id: string, stop?: StopSpec) =>
    take(api.POST('/api/v1/runs/{run_id}/resume', { ...of(id), body: stop ? { stop } : null })),
  archive: (id: string, archived: boolean) =>
    take(api.POST('/api/v1/runs/{run_id}/archive', { ...of(id), body: { archived } })),
  delete: (id: string) => take(api.DELETE('/api/v1/runs/{run_id}', of(id))),
};

/** Stores new runs; answers with all of them, one a seed. */
export async function startRuns(fields: RunFields): Promise<Run[]> {
  const made = await take(api.POST('/api/v1/runs', { body: fields }));
  return 'items' in made ? made.items : [made];
}

/** Runs a change and then has everything it may have touched fetched anew. */
export function useRunChange<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      client.invalidateQueries({
        predicate: ({ queryKey }) => ['run', 'runs'].includes(String(queryKey[0])),
      }),
  });
}
