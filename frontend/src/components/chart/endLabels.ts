/** Names of lines at their ends, in place of a legend. */
import type { Data, Layout } from 'plotly.js';
import type { Trace } from '@/api/tails';
import { nameOf, seriesOf } from './traceNames';

export type EndLabel = {
  name: string;
  /** Id of the run or group. */
  series: string | undefined;
  colour: string | undefined;
  /** The last value in view. */
  value: number;
};

/** The height of a label. */
export const LABEL_PX = 15;
/** Beside a label: before it, and at the end of the chart. */
const GAPS_PX = 14;
/** The average width of a letter, where none can be measured. */
const LETTER_PX = 6.2;
const FONT = "11px 'Inter Variable', Inter, sans-serif";
/** The labels' largest share of a chart's width: what names a line is never cut. */
const LARGEST_SHARE = 0.4;
/** Narrower charts need their width for the lines. */
const MIN_WIDTH_PX = 640;
/** The plot's share of a chart's height. */
const PLOT_SHARE = 0.7;

const isNamed = (trace: Trace): boolean => trace.meta?.kind === 'line' && trace.showlegend !== false;

let measuring: CanvasRenderingContext2D | null | undefined;

function widthOf(text: string): number {
  if (measuring === undefined) {
    measuring = 'OffscreenCanvas' in globalThis ? document.createElement('canvas').getContext('2d') : null;
    if (measuring) measuring.font = FONT;
  }
  return measuring?.measureText(text).width ?? LETTER_PX * text.length;
}

/** The room that the names of a chart's lines need at the right of the plot. */
const roomFor = (traces: readonly Data[]): number =>
  Math.ceil(
    Math.max(
      0,
      ...(traces as readonly Trace[]).filter(isNamed).map((trace) => GAPS_PX + widthOf(nameOf(trace))),
    ),
  );

/** Whether there is room for the names of a chart's lines at their ends. */
export function canLabel(traces: readonly Data[], layout: Partial<Layout>, width: number, height: number) {
  const n = (traces as readonly Trace[]).filter(isNamed).length;
  const isBeside = layout.legend?.orientation === 'v';
  const isWide = width >= MIN_WIDTH_PX && roomFor(traces) <= LARGEST_SHARE * width;
  return n > 1 && !isBeside && isWide && n * LABEL_PX <= PLOT_SHARE * height;
}

/** A figure whose legend has no lines. */
export function withoutLines(traces: readonly Data[], layout: Partial<Layout>) {
  const data = (traces as readonly Trace[]).map((trace) =>
    isNamed(trace) ? ({ ...trace, showlegend: false } as Data) : (trace as Data),
  );
  const hasOthers = (data as Trace[]).some((trace) => trace.showlegend !== false);
  return { data, layout: { ...layout, showlegend: hasOthers && layout.showlegend !== false } };
}

/** The layout with room for the names of lines. */
export const withRoom = (layout: Partial<Layout>, traces: readonly Data[]): Partial<Layout> => ({
  ...layout,
  margin: { ...layout.margin, r: roomFor(traces) },
});

/** The last point of a trace that is in a range of x, unless it ends before the range. */
function lastIn({ x, y }: Trace, [from, to]: readonly [number, number]): [x: number, y: number] | undefined {
  for (let at = (x?.length ?? 0) - 1; at >= 0; at -= 1) {
    const [place, value] = [x?.[at], y?.[at]];
    if (typeof place !== 'number' || typeof value !== 'number' || !Number.isFinite(value)) continue;
    if (place < from) return undefined;
    if (place <= to) return [place, value];
  }
  return undefined;
}

/** The label of each named line that has a value in a range of x, perhaps of fewer than all seeds. */
export function endLabels(data: readonly Data[], range: readonly [number, number]): EndLabel[] {
  const traces = data as readonly Trace[];
  return traces.filter(isNamed).flatMap((line) => {
    const { group, source } = line.meta ?? {};
    const partial = traces.filter(
      ({ meta }) => meta?.kind === 'partial' && meta.group === group && meta.source === source,
    );
    const [last] = [line, ...partial]
      .flatMap((trace) => [lastIn(trace, range) ?? []])
      .filter(({ length }) => length > 0)
      .toSorted(([a = 0], [b = 0]) => b - a);
    const value = last?.[1];
    return value === undefined
      ? []
      : [{ name: nameOf(line), series: seriesOf(line), colour: line.line?.color, value }];
  });
}

/** Tops of labels as close to where they are wanted as they can be without covering each other. */
export function apart(wanted: readonly number[], from: number, to: number): number[] {
  const order = [...wanted.keys()].sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  const tops = new Map<number, number>();
  let next = from;
  for (const at of order) {
    const top = Math.max(wanted[at] ?? 0, next);
    tops.set(at, top);
    next = top + LABEL_PX;
  }
  let limit = to;
  for (const at of order.toReversed()) {
    limit = Math.min(tops.get(at) ?? 0, limit - LABEL_PX);
    tops.set(at, limit);
  }
  return wanted.map((_, at) => tops.get(at) ?? 0);
}
