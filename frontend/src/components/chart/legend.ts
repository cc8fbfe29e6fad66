import type { Data } from 'plotly.js';
import type { Label, Meta, Trace } from '@/api/tails';
import { fitted } from '@/lib/shortNames';

/** By id, the whole names of runs and what a legend calls them. */
export type LegendNames = ReadonlyMap<string, { name: string; short: string }>;

/** Plotly renders text as HTML and replaces `%{…}` in it. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('%{', '%&#123;');

/** Text of a figure, which is escaped for plotly. */
export const plain = (text: string): string =>
  text.replaceAll('&#123;', '{').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

const withDetail = (name: string, { detail }: Label): string => (detail ? `${name}, ${detail}` : name);

const wholeLabel = (label: Label): string =>
  withDetail(label.settings ? `${label.name} (${label.settings})` : (label.name ?? ''), label);

/** Short names of groups by their whole labels: where all have the same name, the settings in which they differ. */
function shortGroups(labels: readonly Label[]): ReadonlyMap<string, string> {
  const whole = new Map(labels.map((label) => [wholeLabel(label), label]));
  const entries = [...whole.values()];
  const isCommon = entries.every(({ name, settings }) => settings && name === entries[0]?.name);
  const short = fitted(
    entries.map((label) => (isCommon ? withDetail(label.settings ?? '', label) : wholeLabel(label))),
  );
  return new Map([...whole.keys()].map((label, at) => [label, short[at] ?? label]));
}

/** Traces whose names in the legend and the tooltip are short, and whole in their `meta`. */
export function withShortNames(traces: readonly Data[], names: LegendNames): Data[] {
  const all = traces as readonly Trace[];
  const groups = shortGroups(all.flatMap(({ meta }) => (meta?.group && meta.label ? [meta.label] : [])));
  const shortOf = ({ run, group, label }: Meta): string | undefined => {
    if (!label) return undefined;
    if (group !== undefined) return groups.get(wholeLabel(label));
    const named = names.get(run ?? '');
    // The only run of a learning curve is not named in it.
    return named?.name === label.name ? withDetail(named?.short ?? '', label) : undefined;
  };
  return all.map((trace): Data => {
    const { meta } = trace;
    const short = meta?.kind !== 'range' && meta?.kind !== 'points' && meta ? shortOf(meta) : undefined;
    if (short === undefined || !meta?.label) return trace as Data;
    return {
      ...trace,
      name: escaped(short),
      meta: { ...meta, title: wholeLabel(meta.label) },
    } as unknown as Data;
  });
}
