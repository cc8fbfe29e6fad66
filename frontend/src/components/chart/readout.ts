import type { Data } from 'plotly.js';
import type { Details } from './fill';
import { plain } from './legend';

/** A line of the tooltip. */
export type Entry = {
  name: string;
  colour: string | undefined;
  value: number | null;
  /** Such as the range of its bucket. */
  details: Details | undefined;
  note: string | undefined;
};

type Trace = {
  name?: string;
  x?: readonly unknown[];
  y?: readonly unknown[];
  text?: readonly string[] | string;
  mode?: string;
  yaxis?: string;
  visible?: unknown;
  hoverinfo?: string;
  line?: { color?: string };
  customdata?: readonly Details[];
  meta?: { y?: string };
};

/** The index of the value closest to `x`; -1 without any. */
function closest(values: readonly unknown[], x: number): number {
  let best = -1;
  let distance = Infinity;
  for (const [index, value] of values.entries()) {
    const away = typeof value === 'number' ? Math.abs(value - x) : Infinity;
    if (away < distance) [best, distance] = [index, away];
  }
  return best;
}

/**
 * The values of all lines at `x`, highest first, followed by the marks near it.
 *
 * @param near how far from `x` a mark or an evaluation may be.
 */
export function valuesAt(traces: readonly Data[], x: number, near: number): Entry[] {
  const entries = (traces as unknown as readonly Trace[]).flatMap((trace): Entry[] => {
    if (!trace.x || trace.visible === 'legendonly' || trace.hoverinfo === 'skip') return [];
    const index = closest(trace.x, x);
    const at = trace.x[index];
    if (typeof at !== 'number') return [];
    const note = typeof trace.text === 'string' ? trace.text : trace.text?.[index];
    const isLine = trace.meta?.y !== undefined;
    if (!isLine && Math.abs(at - x) > near) return [];
    if (trace.yaxis === 'y2') {
      return [
        {
          name: plain(note ?? ''),
          colour: trace.line?.color,
          value: null,
          details: undefined,
          note: undefined,
        },
      ];
    }
    const [first, last] = [trace.x.find((value) => typeof value === 'number'), trace.x.at(-1)];
    // A line has no value before its start or after its end.
    if (typeof first === 'number' && typeof last === 'number' && (x < first - near || x > last + near))
      return [];
    const value = trace.y?.[index];
    if (typeof value !== 'number') return [];
    const details = trace.customdata?.[index];
    return [{ name: plain(trace.name ?? ''), colour: trace.line?.color, value, details, note }];
  });
  return entries.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
}
