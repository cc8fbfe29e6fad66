import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { formatInteger, formatNumber } from '@/lib/format';
import { keys } from './keys';

export type Curve = components['schemas']['Curve'];
export type Chart = components['schemas']['Chart'];
export type XAxis = Chart['x'];

export const X_AXES: readonly { id: XAxis; label: string; unit: string }[] = [
  { id: 'agent_steps', label: 'Agent steps', unit: 'agent steps' },
  { id: 'frames', label: 'Frames', unit: 'frames' },
  { id: 'updates', label: 'Updates', unit: 'updates' },
  { id: 'wall_time_s', label: 'Training time', unit: 's' },
  { id: 'clock_time_s', label: 'Clock time', unit: 's' },
  { id: 'episodes', label: 'Episodes', unit: 'episodes' },
];

/** What an axis of agent steps counts with series of some external runs. */
const COUNTED = [
  { id: 'iterations', label: 'Iterations', unit: 'iterations' },
  { id: 'seconds', label: 'Seconds of its script', unit: 's' },
];

/** A place on an axis that counts `x`, such as `Frames 1,000`, `Iterations 20` or `Clock time 60 s`. */
export function formatX(x: string, value: number): string {
  const axis = [...X_AXES, ...COUNTED].find(({ id }) => id === x);
  if (!axis) return `${x} ${formatNumber(value)}`; // a metric
  const { label, unit } = axis;
  const place = `${label} ${formatInteger(Math.round(value))}`;
  return unit === label.toLowerCase() ? place : `${place} ${unit}`;
}

export const SMOOTHINGS = ['window', 'ema', 'points'] as const;

/**
 * A moving average over x with a width or time constant, which is null where the service chooses it, or over
 * points with a weight.
 */
export type Smoothing = { kind: (typeof SMOOTHINGS)[number]; weight: number; scale: number | null };

export type Range = readonly [number, number];

/** The x axis, smoothing and zoomed range of a chart. */
export type Axes = { x: XAxis; smoothing: Smoothing; zoom: Range | null; points: number };

export const CENTRES = ['median', 'mean', 'iqm'] as const;
export const INTERVALS = ['se', 'sd', 'ci95', 'bootstrap', 'min_max'] as const;

/** What is drawn of several seeds: a line, the band around it, and perhaps each seed as a thin line. */
export type Spread = {
  centre: (typeof CENTRES)[number];
  interval: (typeof INTERVALS)[number];
  seeds: boolean;
};

export const DEFAULT_SPREAD: Spread = { centre: 'mean', interval: 'se', seeds: false };

/** The same with a band that exists around its centre. */
export const possible = (spread: Spread): Spread =>
  spread.centre === 'median' && (spread.interval === 'se' || spread.interval === 'bootstrap')
    ? { ...spread, interval: 'ci95' }
    : spread;

/** The query parameters of smoothing. */
export const smoothingParameters = ({ kind, weight, scale }: Smoothing) =>
  kind === 'points' ? { smooth: weight } : { smoothing: kind, ...(scale !== null && { scale }) };

export const DEFAULT_X: XAxis = 'agent_steps';
export const DEFAULT_SMOOTH = 0.9;
export const EPISODE_RETURN = 'rollout/episode_return';
export const NO_SMOOTHING: Smoothing = { kind: 'points', weight: 0, scale: null };

export type ChartRequest = {
  runs: readonly string[];
  metrics: readonly string[];
  source?: readonly string[];
  axes: Axes;
  /** Whether `EPISODE_RETURN` stands for the metric by which each run is scored. */
  scored?: boolean;
};

/** What is fetched for a zoom: its width on either side as well, so that panning shows curves immediately. */
export const rangeParameters = (zoom: Axes['zoom'], points: number) => {
  if (!zoom) return { points };
  const [from, to] = zoom;
  return { points: 3 * points, x_from: Math.max(0, from - (to - from)), x_to: to + (to - from) };
};

/** The series of a chart. */
export const chartQuery = ({ runs, metrics, source = [], axes, scored = false }: ChartRequest) => {
  const { x, smoothing, zoom, points } = axes;
  return queryOptions({
    queryKey: keys.series(runs, metrics, source, axes, scored),
    queryFn: async ({ signal }): Promise<Chart> => {
      const query = {
        run: [...runs],
        metric: [...metrics],
        source: [...source],
        x,
        merge_equal_x: true,
        scored,
        ...rangeParameters(zoom, points),
        ...smoothingParameters(smoothing),
      };
      return unwrap(api.GET('/api/v1/series', { params: { query }, signal }));
    },
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
    queryKey: keys.seriesNames(run),
    meta: { slow: true },
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/series', { params: { path: { run_id: run } }, signal })),
  });
