import { queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Curve = components['schemas']['Curve'];
export type Chart = components['schemas']['Chart'];
export type XAxis = Chart['x'];

const COLUMNS = ['x', 'mean', 'min', 'max', 'last', 'count'] as const;

const name = ({ run, metric, source }: Curve): string => `${run} ${metric} ${source}`;

/** A curve with the buckets it lacked; buckets that did not change stay the same. */
export function mergeCurve(had: Curve | undefined, news: Curve): Curve {
  if (!had || news.reset) return news;
  const keep = news.first_bucket;
  const merged: Curve = { ...news, first_bucket: 0 };
  for (const column of COLUMNS) merged[column] = [...had[column].slice(0, keep), ...news[column]] as number[];
  merged.smoothed =
    had.smoothed && news.smoothed ? [...had.smoothed.slice(0, keep), ...news.smoothed] : news.smoothed;
  return merged;
}

/** A chart with what is new since it was fetched. */
export function mergeChart(had: Chart | undefined, news: Chart): Chart {
  if (!had) return news;
  const before = new Map(had.series.map((curve) => [name(curve), curve]));
  return { ...news, series: news.series.map((curve) => mergeCurve(before.get(name(curve)), curve)) };
}

export type ChartRequest = {
  run: string;
  metrics: string[];
  x: XAxis;
  smooth: number;
  points: number;
  source?: string[];
};

/** Series of one run as a chart shows them; fetched again, only what is new comes over the wire. */
export const chartQuery = (client: QueryClient, request: ChartRequest) => {
  const { run, metrics, x, smooth, points, source = [] } = request;
  const queryKey = keys.ofRun(run, 'series', metrics, source, x, smooth, points);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Chart> => {
      const had = client.getQueryData<Chart>(queryKey);
      const since = had?.series.map((curve) => curve.revision) ?? [];
      const query = {
        run: [run],
        metric: metrics,
        source,
        x,
        smooth,
        points,
        ...(since.length > 0 ? { since_revision: [Math.min(...since)] } : {}),
      };
      return mergeChart(had, await take(api.GET('/api/v1/series', { params: { query }, signal })));
    },
    // Comparing a thousand points with a thousand points finds nothing that merging does not know.
    structuralSharing: false,
  });
};

/** Which series a run has. */
export const seriesNamesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'series-names'),
    queryFn: ({ signal }) =>
      take(api.GET('/api/v1/runs/{run_id}/series', { params: { path: { run_id: run } }, signal })),
  });
