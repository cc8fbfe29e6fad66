import type { Chart } from '@/api/series';

/** The newest value of each part of a run, by its name; '' for the run as a whole. */
export type Parts = ReadonlyMap<string, number>;

/** What a chart says last of a metric. */
export function newest(chart: Chart | undefined, metric: string): Parts {
  const found = new Map<string, number>();
  for (const curve of chart?.series ?? []) {
    const last = curve.metric === metric ? curve.last.at(-1) : undefined;
    if (last != null) found.set(curve.source, last);
  }
  return found;
}

/** A part's number: actor 10 comes after actor 9. */
const numberOf = (source: string): number => Number(/\d+/.exec(source)?.[0] ?? 0);

/** The parts in order. */
export const inOrder = (parts: Parts): [string, number][] =>
  [...parts].sort(([a], [b]) => numberOf(a) - numberOf(b));

/** Least and greatest; undefined where there is none. */
export function rangeOf(parts: Parts): [number, number] | undefined {
  const values = [...parts.values()];
  return values.length > 0 ? [Math.min(...values), Math.max(...values)] : undefined;
}
