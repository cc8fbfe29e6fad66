import type { Data, PlotData } from 'plotly.js';
import type { Figure } from '@/api/figures';
import type { Chart, Curve, GroupCurve } from '@/api/series';
import { formatInteger, plural } from '@/lib/format';

/** Which column of which run or group a trace without data shows. */
type Meta = {
  run?: string;
  group?: string;
  metric?: string;
  source?: string;
  y?: string;
  seed?: number;
  /** The trace is the outline from column `low` to `y` of buckets with at least `from` values. */
  from?: number;
  /** The trace shows buckets with fewer values than this. */
  below?: number;
};

type Value = number | null;

const GROUP_COLUMNS = ['mean', 'median', 'iqm', 'low', 'high'] as const;

function groupColumnOf(curve: GroupCurve, name: string, seed = 0): Value[] {
  if (name === 'seed_values') return curve.seed_values[seed] ?? [];
  return curve[GROUP_COLUMNS.find((each) => each === name) ?? 'median'];
}

/** The outline of each stretch of buckets with at least `from` values, separated by gaps. */
function outline({ x, min, max, count }: Curve, from: number): { x: Value[]; y: Value[] } {
  const outlined: { x: Value[]; y: Value[] } = { x: [], y: [] };
  let stretch: number[] = [];
  const close = (): void => {
    if (stretch.length === 0) return;
    const back = stretch.toReversed();
    const gap = outlined.x.length > 0 ? [null] : [];
    outlined.x.push(...gap, ...[...stretch, ...back].map((at) => x[at] ?? null));
    outlined.y.push(...gap, ...stretch.map((at) => max[at] ?? null), ...back.map((at) => min[at] ?? null));
    stretch = [];
  };
  for (const at of x.keys()) {
    if ((count[at] ?? 0) >= from && min[at] != null && max[at] != null) stretch.push(at);
    else close();
  }
  close();
  return outlined;
}

/** Up to this many points get markers; a line through one point would be invisible. */
const MAX_MARKERS = 8;
const markers = (x: readonly unknown[]): object =>
  x.length > 0 && x.length <= MAX_MARKERS ? { mode: 'lines+markers' } : {};

/** Of each point of a line: the lowest and highest value, and the number of values. */
export type Details = readonly [low: Value, high: Value, count: number];

function curveTrace(meta: Meta, curve: Curve): object {
  const { x, mean, min, max, smoothed, count } = curve;
  if (meta.from !== undefined) return outline(curve, meta.from);
  if (meta.below !== undefined) {
    const few = [...x.keys()].filter((at) => (count[at] ?? 0) < (meta.below ?? 0));
    return { x: few.map((at) => x[at]), y: few.map((at) => mean[at]) };
  }
  const details = x.map((_, at): Details => [min[at] ?? null, max[at] ?? null, count[at] ?? 0]);
  return { x, y: (meta.y === 'smoothed' ? smoothed : null) ?? mean, customdata: details, ...markers(x) };
}

function groupTrace({ y = '', seed }: Meta, curve: GroupCurve): object {
  const details = curve.n.map((n, at): Details => [curve.low[at] ?? null, curve.high[at] ?? null, n]);
  const isCentre = y === 'mean' || y === 'median' || y === 'iqm';
  return {
    x: curve.x,
    y: groupColumnOf(curve, y, seed),
    ...(isCentre ? { customdata: details } : {}),
    ...markers(curve.x),
  };
}

/** The traces of the service's figure, filled with the data of their series. */
export function fill(figure: Figure, chart: Chart): Data[] {
  let named = false;
  return figure.data.map((trace) => {
    const { meta } = trace as { meta?: Meta };
    if (meta?.y === undefined) return trace;
    const matches = (each: Curve | GroupCurve): boolean =>
      each.metric === meta.metric && each.source === meta.source;
    if (meta.group !== undefined) {
      const curve = chart.groups.find((each) => each.id === meta.group && matches(each));
      return { ...trace, ...(curve ? groupTrace(meta, curve) : { x: [], y: [] }) };
    }
    const curve = chart.series.find((each) => each.run === meta.run && matches(each));
    if (!curve) return { ...trace, x: [], y: [] };
    const values = curveTrace(meta, curve) as Partial<PlotData>;
    if (meta.from === undefined) return { ...trace, ...values } as Data;
    // One legend entry for all ranges.
    const showlegend = !named && (values.x?.length ?? 0) > 0;
    named ||= showlegend;
    return { ...trace, ...values, showlegend } as Data;
  });
}

/** Hides all-zero shares of a stacked chart from the legend, which has little room. */
export function withoutEmptyShares(traces: readonly Data[]): Data[] {
  return traces.map((trace) => {
    const { stackgroup, y } = trace as { stackgroup?: string; y?: readonly unknown[] };
    return stackgroup && y && !y.some(Boolean) ? { ...trace, showlegend: false } : trace;
  });
}

type Counted = { n_total: number; n_shown: number; mean?: readonly (number | null)[] };

/** "1,000 of 123,456 points" for a downsampled chart; mentions what a log scale omits. */
export function shownOfTotal(curves: readonly Counted[], log = false): string {
  const omits = log && curves.some(({ mean }) => mean?.some((value) => value !== null && value <= 0));
  return pointsOf(curves) + (omits ? '; values ≤ 0 are not shown on a log scale' : '');
}

function pointsOf(curves: readonly Counted[]): string {
  const total = curves.reduce((sum, curve) => sum + curve.n_total, 0);
  const shown = curves.reduce((sum, curve) => sum + curve.n_shown, 0);
  return shown < total ? `${formatInteger(shown)} of ${plural(total, 'point')}` : plural(total, 'point');
}
