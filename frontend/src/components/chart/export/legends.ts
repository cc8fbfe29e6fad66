/** Legends that were edited for an export: this browser remembers them for each view, by the names in its legend. */
import type { LegendEntry } from './printLayout';

/** By view, the latest last: the entries in their order. */
export type Legends = Readonly<Record<string, readonly { name: string; text: string }[]>>;

const MAX_VIEWS = 100;

const viewOf = (entries: readonly LegendEntry[]): string =>
  entries
    .map(({ name }) => name)
    .toSorted()
    .join('\n');

/** The edited entries of a legend; undefined if it was not edited. */
export const legendOf = (
  legends: Legends,
  entries: readonly LegendEntry[],
): readonly LegendEntry[] | undefined =>
  legends[viewOf(entries)]?.flatMap(({ name, text }) => {
    const entry = entries.find((candidate) => candidate.name === name);
    return entry ? [{ ...entry, text }] : [];
  });

/** The legends with other entries of one of them; undefined: as the figure has them. */
export function withLegend(
  legends: Legends,
  entries: readonly LegendEntry[],
  to: readonly LegendEntry[] | undefined,
): Legends {
  const { [viewOf(entries)]: _former, ...others } = legends;
  const kept = Object.fromEntries(Object.entries(others).slice(to ? 1 - MAX_VIEWS : 0));
  return to ? { ...kept, [viewOf(entries)]: to.map(({ name, text }) => ({ name, text })) } : kept;
}

/** An entry with its text, or without any with that of the figure. */
export const withText = (entry: LegendEntry, entries: readonly LegendEntry[]): LegendEntry =>
  entry.text.trim() ? entry : (entries.find(({ number }) => number === entry.number) ?? entry);
