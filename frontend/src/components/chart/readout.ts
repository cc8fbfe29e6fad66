import type { Data } from 'plotly.js';
import type { Meta, Trace } from '@/api/tails';
import { nameOf, plain, seriesOf } from './traceNames';

/** A line of the tooltip. */
export type Entry = {
  name: string;
  /** Id of the run or group. */
  series: string | undefined;
  colour: string | undefined;
  /** The symbol on the entry's line, or of a mark, which has no line. */
  symbol?: string | undefined;
  value: number | null;
  /** Such as the range of its bucket. */
  details: Details | undefined;
  note: string | undefined;
};

/** Of a point: the lowest and highest value, and the number of values. */
type Details = readonly [low: number, high: number, count: number];

const isKnown = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** The index of the value closest to `x`; -1 without any. */
function closest(values: NonNullable<Trace['x']>, x: number): number {
  let best = -1;
  let distance = Infinity;
  for (const [index, value] of values.entries()) {
    const away = isKnown(value) ? Math.abs(value - x) : Infinity;
    if (away < distance) [best, distance] = [index, away];
  }
  return best;
}

function firstKnown(values: NonNullable<Trace['x']>): number | undefined {
  for (const value of values) if (isKnown(value)) return value;
  return undefined;
}

/** The range and number of the values of a trace's point; undefined where one of them is not known. */
function detailsAt({ low, high, n }: Meta, index: number): Details | undefined {
  const [from, to, count] = [low?.[index], high?.[index], n?.[index]];
  return isKnown(from) && isKnown(to) && isKnown(count) ? [from, to, count] : undefined;
}

/**
 * The values of all lines at `x`, highest first, followed by the marks near it.
 *
 * @param near how far from `x` a mark or an evaluation may be.
 */
export function valuesAt(traces: readonly Data[], x: number, near: number): Entry[] {
  const entries = (traces as readonly Trace[]).flatMap((trace): Entry[] => {
    if (!trace.x || trace.visible === 'legendonly' || trace.hoverinfo === 'skip') return [];
    const index = closest(trace.x, x);
    const at = trace.x[index];
    if (!isKnown(at)) return [];
    const note = typeof trace.text === 'string' ? trace.text : trace.text?.[index];
    const isLine = trace.meta?.kind === 'line' || trace.meta?.kind === 'partial';
    if (!isLine && Math.abs(at - x) > near) return [];
    if (trace.yaxis === 'y2') {
      return [
        {
          name: plain(note ?? ''),
          series: undefined,
          colour: trace.marker?.color,
          symbol: trace.marker?.symbol,
          value: null,
          details: undefined,
          note: undefined,
        },
      ];
    }
    const [first, last] = [firstKnown(trace.x), trace.x.at(-1)];
    // A line has no value before its start or after its end.
    if (isKnown(first) && isKnown(last) && (x < first - near || x > last + near)) return [];
    const value = trace.y?.[index];
    if (!isKnown(value)) return [];
    const details = trace.meta && detailsAt(trace.meta, index);
    const symbol = isLine ? trace.marker?.symbol : undefined;
    const nSeeds = trace.meta?.kind === 'partial' ? trace.meta.n?.[index] : undefined;
    return [
      {
        name: nameOf(trace),
        series: seriesOf(trace),
        colour: trace.line?.color,
        symbol,
        value,
        details,
        note: isKnown(nSeeds) ? `n = ${nSeeds}` : note,
      },
    ];
  });
  return entries.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
}
