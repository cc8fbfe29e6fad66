import { keepPreviousData, queryOptions, type QueryClient } from '@tanstack/react-query';
import { fetchChart } from './chartBatch';
import { api, unwrap } from './client';
import type { components } from './generated';
import { formatInteger } from '@/lib/format';
import { keys } from './keys';

export type Curve = components['schemas']['Curve'];
export type GroupCurve = components['schemas']['GroupCurve'];
export type Chart = components['schemas']['Chart'];
export type XAxis = Chart['x'];

export const X_AXES: readonly { id: XAxis; label: string; unit: string; scale: number }[] = [
  { id: 'agent_steps', label: 'Agent steps', unit: 'agent steps', scale: 10_000 },
  { id: 'frames', label: 'Frames', unit: 'frames', scale: 40_000 },
  { id: 'updates', label: 'Updates', unit: 'updates', scale: 100 },
  { id: 'wall_time_s', label: 'Training time', unit: 's', scale: 60 },
  { id: 'clock_time_s', label: 'Clock time', unit: 's', scale: 60 },
  { id: 'episodes', label: 'Episodes', unit: 'episodes', scale: 100 },
];

/** A place on the axis, such as `Frames 1,000` or `Clock time 60 s`. */
export function formatX(x: XAxis, value: number): string {
  const { label = '', unit = '' } = X_AXES.find(({ id }) => id === x) ?? {};
  const place = `${label} ${formatInteger(Math.round(value))}`;
  return unit === label.toLowerCase() ? place : `${place} ${unit}`;
}

export const SMOOTHINGS = ['points', 'ema', 'window'] as const;

/** A moving average over points with a weight, or over x with a time constant or width. */
export type Smoothing = { kind: (typeof SMOOTHINGS)[number]; weight: number; scale: number };

export type Range = readonly [number, number];

/** The x axis, smoothing and zoomed range of a chart. */
export type Axes = { x: XAxis; smoothing: Smoothing; zoom: Range | null; points: number };

export const CENTRES = ['median', 'mean', 'iqm'] as const;
export const INTERVALS = ['ci95', 'sd', 'se', 'min_max'] as const;

/** What is drawn of several seeds: a line and the band around it. */
export type Spread = { centre: (typeof CENTRES)[number]; interval: (typeof INTERVALS)[number] };

/** The query parameters of smoothing. */
export const smoothingParameters = ({ kind, weight, scale }: Smoothing) =>
  kind === 'points' ? { smooth: weight } : { smooth: 0, smoothing: kind, scale };

export const DEFAULT_X: XAxis = 'agent_steps';
export const DEFAULT_SMOOTH = 0.9;
export const EPISODE_RETURN = 'rollout/episode_return';
export const NO_SMOOTHING: Smoothing = { kind: 'points', weight: 0, scale: 0 };

type Buckets = { reset: boolean; first_bucket: number; bucket?: number[] | null };

const CURVE_COLUMNS = ['x', 'mean', 'min', 'max', 'last', 'count', 'smoothed', 'bucket'] as const;
const GROUP_COLUMNS = ['x', 'mean', 'median', 'iqm', 'low', 'high', 'n'] as const;

/** Appends an update to the buckets already fetched; the update replaces everything from its first bucket on. */
function mergeBuckets<T extends Buckets>(
  previous: T | undefined,
  update: T,
  columns: readonly (keyof T)[],
): T {
  if (!previous || update.reset) return update;
  const merged = { ...update, first_bucket: 0 };
  const { bucket } = previous;
  const kept = bucket ? bucket.filter((at) => at < update.first_bucket).length : update.first_bucket;
  for (const column of columns) {
    const [before, after] = [previous[column], update[column]];
    if (Array.isArray(before) && Array.isArray(after)) {
      merged[column] = [...(before as unknown[]).slice(0, kept), ...(after as unknown[])] as T[keyof T];
    }
  }
  return merged;
}

export const mergeCurve = (previous: Curve | undefined, update: Curve): Curve =>
  mergeBuckets(previous, update, CURVE_COLUMNS);

/** Merges like a curve; a seed that is new to the group has no values before the update. */
function mergeGroup(previous: GroupCurve | undefined, update: GroupCurve): GroupCurve {
  const merged = mergeBuckets(previous, update, GROUP_COLUMNS);
  if (!previous || update.reset) return merged;
  const seed_values = update.seed_values.map((after, seed) => {
    const before = previous.seed_values[previous.runs.indexOf(update.runs[seed] ?? '')] ?? [];
    return [...Array.from({ length: update.first_bucket }, (_, at) => before[at] ?? null), ...after];
  });
  return { ...merged, seed_values };
}

const curveKey = ({ run, metric, source }: Curve): string => `${run} ${metric} ${source}`;

/** Merges what has changed since a chart was fetched into it. */
export function mergeChart(previous: Chart | undefined, update: Chart): Chart {
  if (!previous) return update;
  const curves = new Map(previous.series.map((curve) => [curveKey(curve), curve]));
  const groups = new Map(previous.groups.map((group) => [group.id, group]));
  return {
    ...update,
    series: update.series.map((curve) => mergeCurve(curves.get(curveKey(curve)), curve)),
    groups: update.groups.map((group) => mergeGroup(groups.get(group.id), group)),
  };
}

/** The revision of each run in a chart, in the order of `runs`; 0 for a run without series. */
export function revisionsOf(chart: Chart, runs: readonly string[]): number[] {
  const revisions = new Map<string, number>();
  for (const { run, revision } of chart.series)
    revisions.set(run, Math.min(revision, revisions.get(run) ?? revision));
  for (const group of chart.groups) {
    group.runs.forEach((run, index) => revisions.set(run, group.revisions[index] ?? 0));
  }
  return runs.map((run) => revisions.get(run) ?? 0);
}

export type ChartRequest = {
  runs: readonly string[];
  metrics: readonly string[];
  source?: readonly string[];
  axes: Axes;
  /** Aggregate the runs of a group into one curve with a band. */
  spread?: Spread | undefined;
};

/** What is fetched for a zoom: its width on either side as well, so that panning shows curves immediately. */
export const rangeParameters = (zoom: Axes['zoom'], points: number) => {
  if (!zoom) return { points };
  const [from, to] = zoom;
  return { points: 3 * points, x_from: Math.max(0, from - (to - from)), x_to: to + (to - from) };
};

/** The series of a chart; a refetch transfers only what has changed. */
export const chartQuery = (client: QueryClient, request: ChartRequest) => {
  const { runs, metrics, source = [], axes, spread } = request;
  const { x, smoothing, zoom, points } = axes;
  const queryKey = keys.series(runs, metrics, source, axes, spread);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Chart> => {
      const previous = client.getQueryData<Chart>(queryKey);
      const query = {
        run: [...runs],
        metric: [...metrics],
        source: [...source],
        x,
        merge_equal_x: true,
        ...rangeParameters(zoom, points),
        ...smoothingParameters(smoothing),
        ...(spread ? { group_by: 'seed' as const, ...spread } : {}),
        ...(previous ? { since_revision: revisionsOf(previous, runs) } : {}),
      };
      return mergeChart(previous, await fetchChart(query, signal));
    },
    // Merging already keeps unchanged buckets; a deep comparison of all points would be wasted.
    structuralSharing: false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });
};

/** The metrics of some runs, by name. */
export const metricsQuery = (runs: readonly string[]) =>
  queryOptions({
    queryKey: keys.metrics(runs),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/metrics', { params: { query: { run: [...runs] } }, signal }))).items,
    enabled: runs.length > 0,
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  });

/** The metric and source of each of a run's series. */
export const seriesNamesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'series-names'),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/series', { params: { path: { run_id: run } }, signal })),
  });
