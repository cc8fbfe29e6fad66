import { keepPreviousData, queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Curve = components['schemas']['Curve'];
export type GroupCurve = components['schemas']['GroupCurve'];
export type Chart = components['schemas']['Chart'];
export type XAxis = Chart['x'];

type Buckets = { reset: boolean; first_bucket: number };

const CURVE_COLUMNS = ['x', 'mean', 'min', 'max', 'last', 'count', 'smoothed'] as const;
const GROUP_COLUMNS = ['x', 'mean', 'low', 'high', 'n'] as const;

/** What one had, with the buckets one lacked; buckets that did not change stay the same. */
function merged<T extends Buckets>(had: T | undefined, news: T, columns: readonly (keyof T)[]): T {
  if (!had || news.reset) return news;
  const next = { ...news, first_bucket: 0 };
  for (const column of columns) {
    const [before, after] = [had[column], news[column]];
    if (Array.isArray(before) && Array.isArray(after)) {
      next[column] = [
        ...(before as unknown[]).slice(0, news.first_bucket),
        ...(after as unknown[]),
      ] as T[keyof T];
    }
  }
  return next;
}

export const mergeCurve = (had: Curve | undefined, news: Curve): Curve => merged(had, news, CURVE_COLUMNS);

const name = ({ run, metric, source }: Curve): string => `${run} ${metric} ${source}`;

/** A chart with what is new since it was fetched. */
export function mergeChart(had: Chart | undefined, news: Chart): Chart {
  if (!had) return news;
  const curves = new Map(had.series.map((curve) => [name(curve), curve]));
  const groups = new Map(had.groups.map((group) => [group.id, group]));
  return {
    ...news,
    series: news.series.map((curve) => mergeCurve(curves.get(name(curve)), curve)),
    groups: news.groups.map((group) => merged(groups.get(group.id), group, GROUP_COLUMNS)),
  };
}

/** The revision of each run that a chart tells of, in the order of `runs`; 0 where it tells of none. */
export function revisionsOf(chart: Chart, runs: readonly string[]): number[] {
  const found = new Map<string, number>();
  for (const { run, revision } of chart.series)
    found.set(run, Math.min(revision, found.get(run) ?? revision));
  for (const group of chart.groups) {
    group.runs.forEach((run, index) => found.set(run, group.revisions[index] ?? 0));
  }
  return runs.map((run) => found.get(run) ?? 0);
}

export type ChartRequest = {
  runs: readonly string[];
  metrics: readonly string[];
  source?: readonly string[];
  x: XAxis;
  smooth: number;
  points: number;
  /** Runs that differ in their seed alone as one curve with a band. */
  grouped?: boolean;
};

/** Series as a chart shows them; fetched again, only what is new comes over the wire. */
export const chartQuery = (client: QueryClient, request: ChartRequest) => {
  const { runs, metrics, source = [], x, smooth, points, grouped = false } = request;
  const queryKey = keys.series(runs, metrics, source, x, smooth, points, grouped);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Chart> => {
      const had = client.getQueryData<Chart>(queryKey);
      const query = {
        run: [...runs],
        metric: [...metrics],
        source: [...source],
        x,
        smooth,
        points,
        ...(grouped ? { group_by: 'seed' as const } : {}),
        ...(had ? { since_revision: revisionsOf(had, runs) } : {}),
      };
      return mergeChart(had, await take(api.GET('/api/v1/series', { params: { query }, signal })));
    },
    // Comparing a thousand points with a thousand points finds nothing that merging does not know.
    structuralSharing: false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });
};

/** Which series a run has. */
export const seriesNamesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'series-names'),
    queryFn: ({ signal }) =>
      take(api.GET('/api/v1/runs/{run_id}/series', { params: { path: { run_id: run } }, signal })),
  });
