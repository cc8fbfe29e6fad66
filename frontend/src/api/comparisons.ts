import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
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

/** Statistics over groups of seeds. */
export const comparisonQuery = ({
  runs,
  score,
  at,
  threshold,
  protocol,
  baseline,
  pairs,
  training,
}: ComparisonRequest) =>
  queryOptions({
    queryKey: keys.comparison(runs, score, at, threshold, protocol, baseline, pairs),
    queryFn: ({ signal }) => {
      const query = {
        run: [...runs],
        score,
        at,
        ...(threshold === undefined ? {} : { threshold }),
        ...(protocol === undefined ? {} : { protocol }),
        ...(baseline === undefined ? {} : { baseline }),
        ...(pairs === undefined ? {} : { pairs }),
      };
      return unwrap(api.GET('/api/v1/comparisons', { params: { query }, signal }));
    },
    refetchInterval: training ? REFETCH_MS : false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });

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
