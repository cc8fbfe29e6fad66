import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, take } from './client';
import type { components, paths } from './generated';
import { keys } from './keys';

export type Comparison = components['schemas']['Comparison'];
export type GroupStatistics = components['schemas']['GroupStatistics'];
export type Estimate = components['schemas']['EstimateOut'];
export type RunGroup = components['schemas']['RunGroup'];
export type GroupBy = NonNullable<paths['/api/v1/comparisons/groups']['get']['parameters']['query']>['by'];

const RENEW_MS = 30_000;

export type ComparisonRequest = {
  runs: readonly string[];
  score: Comparison['score'];
  at: Comparison['at'];
  threshold: number | undefined;
  /** Some of the runs still train, so the answer changes. */
  growing: boolean;
};

/** Statistics of groups of seeds. */
export const comparisonQuery = ({ runs, score, at, threshold, growing }: ComparisonRequest) =>
  queryOptions({
    queryKey: keys.comparison(runs, score, at, threshold),
    queryFn: ({ signal }) => {
      const query = { run: [...runs], score, at, ...(threshold === undefined ? {} : { threshold }) };
      return take(api.GET('/api/v1/comparisons', { params: { query }, signal }));
    },
    refetchInterval: growing ? RENEW_MS : false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });

type GroupsQuery = Omit<
  NonNullable<paths['/api/v1/comparisons/groups']['get']['parameters']['query']>,
  'cursor'
>;

/** The list of runs in groups; fetches further pages as they are asked for. */
export const runGroupsQuery = (query: GroupsQuery) =>
  infiniteQueryOptions({
    queryKey: keys.runGroups(query),
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET('/api/v1/comparisons/groups', { params: { query: { ...query, cursor: pageParam } }, signal }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
