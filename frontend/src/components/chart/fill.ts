import type { Annotations, Data, Layout, PlotData } from 'plotly.js';
import type { Figure } from '@/api/figures';
import type { Chart, Curve, GroupCurve } from '@/api/series';
import { plural } from '@/lib/format';

/** What a trace without numbers says of the column it draws: of a run, or of a group of seeds. */
type Meta = { run?: string; group?: string; metric?: string; source?: string; y?: string };

const COLUMNS = ['mean', 'min', 'max', 'last', 'smoothed'] as const;
const GROUP_COLUMNS = ['mean', 'low', 'high'] as const;

function columnOf(curve: Curve, name: string): (number | null)[] {
  const column = COLUMNS.find((each) => each === name);
  return (column && curve[column]) ?? curve.mean;
}

function groupColumnOf(curve: GroupCurve, name: string): (number | null)[] {
  return curve[GROUP_COLUMNS.find((each) => each === name) ?? 'mean'];
}

/** So few points are seen as such; a line through one would be nothing at all. */
const FEW = 8;
const marked = (x: readonly unknown[]): Partial<PlotData> =>
  x.length > 0 && x.length <= FEW ? { mode: 'lines+markers' } : {};

/** The service's figure with the numbers of series put into the traces that ask for them. */
export function fill(figure: Figure, chart: Chart): Data[] {
  return figure.data.map((trace) => {
    const { meta } = trace as { meta?: Meta };
    if (meta?.y === undefined) return trace;
    const { run, group, metric, source, y } = meta;
    const alike = (each: Curve | GroupCurve): boolean => each.metric === metric && each.source === source;
    if (group !== undefined) {
      const curve = chart.groups.find((each) => each.id === group && alike(each));
      const numbers = { x: curve?.x ?? [], y: curve ? groupColumnOf(curve, y) : [] };
      const of = y === 'mean' ? { customdata: curve?.n ?? [] } : {};
      return { ...trace, ...(numbers as Partial<PlotData>), ...of, ...marked(numbers.x) } as Data;
    }
    const curve = chart.series.find((each) => each.run === run && alike(each));
    const numbers = { x: curve?.x ?? [], y: curve ? columnOf(curve, y) : [] };
    return { ...trace, ...(numbers as Partial<PlotData>), ...marked(numbers.x) } as Data;
  });
}

/** Shares that are nothing throughout, left out of the legend: it would hide those that are something. */
export function withoutEmptyShares(traces: readonly Data[]): Data[] {
  return traces.map((trace) => {
    const { stackgroup, y } = trace as { stackgroup?: string; y?: readonly unknown[] };
    return stackgroup && y && !y.some(Boolean) ? { ...trace, showlegend: false } : trace;
  });
}

type Counted = { n_total: number; n_shown: number; mean?: readonly (number | null)[] };

/** "1,000 of 123,456 points", where not every point is drawn; and what a log scale leaves out. */
export function shownOfTotal(curves: readonly Counted[], log = false): string {
  const left = log && curves.some(({ mean }) => mean?.some((value) => value !== null && value <= 0));
  return pointsOf(curves) + (left ? '; 0 and below have no place on a log scale' : '');
}

function pointsOf(curves: readonly Counted[]): string {
  const total = curves.reduce((sum, curve) => sum + curve.n_total, 0);
  const shown = curves.reduce((sum, curve) => sum + curve.n_shown, 0);
  const words = (count: number): string => count.toLocaleString('en');
  return shown < total ? `${words(shown)} of ${words(total)} points` : plural(total, 'point');
}

/** A layout without its title, which the panel around the picture already says; on a log scale if asked. */
export function inPanel(layout: Partial<Layout> = {}, log = false): Partial<Layout> {
  const { title, ...rest } = layout;
  const { autorangeoptions, ...yaxis } = rest.yaxis ?? {};
  return {
    ...rest,
    margin: { ...rest.margin, t: 8 },
    // What should be in view on a linear scale may not even exist on this one.
    ...(log && {
      yaxis: { ...yaxis, type: 'log' as const },
      annotations: (rest.annotations ?? []).flatMap(onLog),
      shapes: (rest.shapes ?? []).filter(({ yref, y0 }) => yref !== 'y' || Number(y0) > 0),
    }),
  };
}

/** An annotation where plotly wants it on a log scale: at the exponent; none of what has no place there. */
function onLog(annotation: Partial<Annotations>): Partial<Annotations>[] {
  if (annotation.yref !== 'y') return [annotation];
  const y = Number(annotation.y);
  return y > 0 ? [{ ...annotation, y: Math.log10(y) }] : [];
}

/** Numbers nearer than this share of their size are one number, but for rounding. */
const ALIKE = 1e-9;

/** The vertical range of what never changes, which its rounding would stretch over the plot; none of others. */
export function flatRange(traces: readonly Data[]): [number, number] | undefined {
  let [least, most] = [Infinity, -Infinity];
  for (const trace of traces) {
    for (const y of (trace as { y?: Iterable<unknown> }).y ?? []) {
      if (typeof y !== 'number') continue;
      least = Math.min(least, y);
      most = Math.max(most, y);
    }
  }
  const size = Math.max(Math.abs(least), Math.abs(most));
  if (size === 0 || !Number.isFinite(size) || most - least > ALIKE * size) return undefined;
  return [most - size / 2, most + size / 2];
}
