import type { Data } from 'plotly.js';
import { fitted } from '@/lib/shortNames';

/** By id, the whole names of runs and what a legend calls them. */
export type LegendNames = ReadonlyMap<string, { name: string; short: string }>;

type Trace = {
  name?: string;
  /** `title`: the whole name. */
  meta?: { run?: string; group?: string; title?: string };
};

/** Plotly renders text as HTML. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Text of a figure, which is escaped for plotly. */
export const plain = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** Labels of groups, such as "PAAC on Pong (n_e = 8), 5 seeds", by what they differ in. */
function shortGroups(labels: readonly string[]): ReadonlyMap<string, string> {
  const parts = labels.map((label) => /^(.*) \((.+)\)(, .*)$/.exec(label));
  const isCommon = parts.every((part) => part && part[1] === parts[0]?.[1]);
  const short = fitted(isCommon ? parts.map((part) => `${part?.[2]}${part?.[3]}`) : labels);
  return new Map(labels.map((label, at) => [label, short[at] ?? label]));
}

/** Traces whose names in the legend and the tooltip are short, and whole in their `meta`. */
export function withShortNames(traces: readonly Data[], names: LegendNames): Data[] {
  const entries = traces.map((trace) => {
    const { name, meta } = trace as Trace;
    return { trace, label: plain(name ?? ''), meta };
  });
  const labels = entries.flatMap(({ label, meta }) => (meta?.group ? [label] : []));
  const groups = shortGroups([...new Set(labels)]);
  return entries.map(({ trace, label, meta }): Data => {
    const run = names.get(meta?.run ?? '');
    // The name of a run may be followed by that of a source.
    const ofRun = run && label.startsWith(run.name) ? run.short + label.slice(run.name.length) : undefined;
    const short = meta?.group ? groups.get(label) : ofRun;
    if (short === undefined) return trace;
    return { ...trace, name: escaped(short), meta: { ...meta, title: label } } as Data;
  });
}

/** Shows whole names when the pointer is on an entry of a drawn chart's legend. */
export function addTooltips(chart: HTMLElement): void {
  for (const entry of chart.querySelectorAll('.legend .traces')) {
    // Plotly keeps the data of an entry at its element.
    const [drawn] = (entry as { __data__?: readonly { trace?: Trace }[] }).__data__ ?? [];
    entry.querySelector('title')?.remove();
    const whole = drawn?.trace?.meta?.title;
    if (!whole) continue;
    const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
    title.textContent = whole;
    entry.append(title);
  }
}
