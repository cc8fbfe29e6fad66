/** Names of lines at their ends, in place of a legend. */
import type { Data, Layout } from 'plotly.js';
import type { Trace } from '@/api/tails';
import { plain } from './legend';

export type EndLabel = {
  name: string;
  /** The whole name. */
  title: string;
  colour: string | undefined;
  /** The last value in view. */
  value: number;
};

/** The height of a label, and the room at the right of the plot for all of them. */
export const LABEL_PX = 15;
export const ROOM_PX = 140;
/** Narrower charts need their width for the lines. */
const MIN_WIDTH_PX = 640;
/** The plot's share of a chart's height. */
const PLOT_SHARE = 0.7;

const isNamed = (trace: Trace): boolean => trace.meta?.kind === 'line' && trace.showlegend !== false;

/** Whether there is room for the names of a chart's lines at their ends. */
export function canLabel(traces: readonly Data[], layout: Partial<Layout>, width: number, height: number) {
  const n = (traces as readonly Trace[]).filter(isNamed).length;
  const isBeside = layout.legend?.orientation === 'v';
  return n > 1 && !isBeside && width >= MIN_WIDTH_PX && n * LABEL_PX <= PLOT_SHARE * height;
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
export const withRoom = (layout: Partial<Layout>): Partial<Layout> => ({
  ...layout,
  margin: { ...layout.margin, r: ROOM_PX },
});

/** The label of each named line that has a value in a range of x. */
export function endLabels(traces: readonly Data[], [from, to]: readonly [number, number]): EndLabel[] {
  return (traces as readonly Trace[]).filter(isNamed).flatMap(({ name, line, meta, x, y }) => {
    const short = plain(name ?? '');
    for (let at = (x?.length ?? 0) - 1; at >= 0; at -= 1) {
      const [place, value] = [x?.[at], y?.[at]];
      if (typeof place !== 'number' || typeof value !== 'number' || !Number.isFinite(value)) continue;
      if (place < from) return [];
      if (place <= to) return [{ name: short, title: meta?.title ?? short, colour: line?.color, value }];
    }
    return [];
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
