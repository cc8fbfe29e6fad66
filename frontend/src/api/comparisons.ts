import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { served } from '@/lib/base';
import { api, unwrap } from './client';
import type { components, paths } from './generated';
import { keys } from './keys';

export type Comparison = components['schemas']['Comparison'];
export type GroupStatistics = components['schemas']['GroupStatistics'];
export type Improvement = components['schemas']['Improvement'];
export type Estimate = components['schemas']['EstimateOut'];
export type RunGroup = components['schemas']['RunGroup'];
type AllGroupsQuery = NonNullable<paths['/api/v1/comparisons/groups']['get']['parameters']['query']>;
export type GroupBy = AllGroupsQuery['by'];
export type GroupSort = NonNullable<AllGroupsQuery['sort']>;

const REFETCH_MS = 30_000;

export type ComparisonRequest = {
  runs: readonly string[];
  score: Comparison['score'];
  at: Comparison['at'];
  threshold: number | undefined;
  /** Of evaluations; each group's own if undefined. */
  protocol: string | undefined;
  /** The group with which the others are compared; the first if undefined. */
  baseline: string | undefined;
  /** Whether all pairs are compared in its place. */
  pairs: 'all' | undefined;
  /** Whether some runs still train, so that the result changes. */
  training: boolean;
};

const parametersOf = ({ runs, score, at, threshold, protocol, baseline, pairs }: ComparisonRequest) => ({
  run: [...runs],
  score,
  at,
  ...(threshold === undefined ? {} : { threshold }),
  ...(protocol === undefined ? {} : { protocol }),
  ...(baseline === undefined ? {} : { baseline }),
  ...(pairs === undefined ? {} : { pairs }),
});

/** The address of a comparison's table as a file. */
export function tableFile(
  request: ComparisonRequest,
  table: 'scores' | 'differences',
  format: 'csv' | 'latex',
): string {
  const query = new URLSearchParams({ table, format });
  for (const [name, value] of Object.entries(parametersOf(request)))
    for (const item of [value].flat()) query.append(name, String(item));
  return served(`/api/v1/comparisons/table?${query.toString()}`);
}

/** Statistics over groups of seeds. */
export const comparisonQuery = (request: ComparisonRequest) => {
  const { runs, score, at, threshold, protocol, baseline, pairs, training } = request;
  return queryOptions({
    queryKey: keys.comparison(runs, score, at, threshold, protocol, baseline, pairs),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/comparisons', { params: { query: parametersOf(request) }, signal })),
    refetchInterval: training ? REFETCH_MS : false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });
};

/** Queues further seeds of configs, given a run of each; requests with the same key create them once. */
export const addSeeds = async (items: { run: string; n: number }[], key: string) =>
  (
    await unwrap(
      api.POST('/api/v1/comparisons/seeds', { body: { items }, headers: { 'Idempotency-Key': key } }),
    )
  ).items;

type GroupsQuery = Omit<AllGroupsQuery, 'cursor'>;

/** Grouped runs, page by page. */
export const runGroupsQuery = (query: GroupsQuery) =>
  infiniteQueryOptions({
    queryKey: keys.runGroups(query),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/comparisons/groups', { params: { query: { ...query, cursor: pageParam } }, signal }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
