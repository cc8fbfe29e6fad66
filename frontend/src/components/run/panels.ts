/** The panels of the workspace in its address, and in a saved view. Which kinds there are is the page's to know. */
import { EPISODE_RETURN } from '@/api/series';
import { formatSizes, parseSizes } from '@/components/chart/panelSize';
import { joinNames, splitNames } from '@/lib/names';
import { defined, flag, oneOf, text, type Unchecked } from '@/lib/search';

/** A panel of any kind, with the fields that its kind has: see `backend/analysis/views/document.py`. */
export type Panel = {
  /** The name of its file in `features/compare/panels/kinds`. */
  kind: string;
  title?: string;
  metrics?: readonly string[];
  formulas?: readonly string[];
  /** The metric over which lines are drawn; without it, the x axis of the page. */
  x?: string;
  log?: true;
  setting?: string;
  settings?: readonly string[];
  score?: 'best_return';
  text?: string;
  /** Without it, the first tab, which has no name. */
  tab?: string;
  columns?: number;
  height_px?: number;
};

export const MAX_PANELS = 100;

const whole = (value: unknown, from: number, to: number): number | undefined =>
  Number.isInteger(value) && Number(value) >= from && Number(value) <= to ? Number(value) : undefined;

const texts = (value: unknown): readonly string[] | undefined => {
  const items = Array.isArray(value) ? value.flatMap((item) => text(item) ?? []) : [];
  return items.length > 0 ? items : undefined;
};

/** A panel of an address or a document, without what is the default; undefined for what is none. */
export function panelOf(value: unknown): Panel | undefined {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Unchecked;
  const kind = text(fields.kind);
  if (kind === undefined || !/^[a-z_]{1,50}$/.test(kind)) return undefined;
  return defined({
    kind,
    title: text(fields.title),
    metrics: texts(fields.metrics),
    formulas: texts(fields.formulas),
    x: text(fields.x),
    log: flag(fields.log),
    setting: text(fields.setting),
    settings: texts(fields.settings),
    score: oneOf(fields.score, ['best_return'] as const),
    text: text(fields.text),
    tab: text(fields.tab),
    columns: whole(fields.columns, 1, 12),
    height_px: whole(fields.height_px, 100, 2000),
  }) as Panel;
}

/** Of a scatter plot in an address, which stands below the other panels without a width. */
const SCATTER_COLUMNS = 4;

/** A panel of an address: a scatter plot with a width, since one without stands below the other panels. */
function placedOf(value: unknown): Panel | [] {
  const panel = panelOf(value);
  if (panel === undefined) return [];
  return panel.kind === 'scatter' ? { ...panel, columns: panel.columns ?? SCATTER_COLUMNS } : panel;
}

/** The only metric of a panel of lines without formulas: it is drawn as it was recorded. */
export const metricOf = ({ kind, metrics = [], formulas, x }: Panel): string | undefined =>
  kind === 'lines' && metrics.length === 1 && !formulas && x === undefined ? metrics[0] : undefined;

/** Whether the name of its metric, its size and its scale say all about a panel. */
const isPlain = (panel: Panel): boolean =>
  metricOf(panel) !== undefined &&
  panel.title === undefined &&
  panel.tab === undefined &&
  (panel.columns === undefined) === (panel.height_px === undefined);

type Address = {
  /** Unchecked: the pages before which the router reads them need not know panels. */
  panels?: readonly unknown[] | undefined;
  metrics?: string | undefined;
  sizes?: string | undefined;
  log?: string | undefined;
};

/** The panels of an address, in order. */
export function panelsOf({ panels, metrics, sizes, log }: Address): readonly Panel[] {
  if (panels) return panels.slice(0, MAX_PANELS).flatMap(placedOf);
  const sizeOf = parseSizes(sizes);
  const isLog = new Set(splitNames(log ?? ''));
  return splitNames(metrics ?? EPISODE_RETURN)
    .filter((metric) => metric !== 'none')
    .flatMap((metric) => {
      const size = sizeOf.get(metric);
      const own = { columns: size?.columns, height_px: size?.height, log: isLog.has(metric) };
      return panelOf({ kind: 'lines', metrics: [metric], ...own }) ?? [];
    });
}

/** The parameters of an address with these panels: metrics where that is all, which is what a person would type. */
export function searchOfPanels(panels: readonly Panel[]): { [K in keyof Address]-?: Address[K] } {
  const metrics = panels.flatMap((panel) => metricOf(panel) ?? []);
  if (!panels.every(isPlain) || new Set(metrics).size < panels.length)
    return { panels, metrics: undefined, sizes: undefined, log: undefined };
  const sized = panels.flatMap(({ columns, height_px: height }, at) =>
    columns === undefined || height === undefined ? [] : [[metrics[at] ?? '', { columns, height }] as const],
  );
  const names = joinNames(metrics);
  return {
    panels: undefined,
    metrics: names === EPISODE_RETURN ? undefined : names || 'none',
    sizes: formatSizes(new Map(sized)) || undefined,
    log: joinNames(metrics.filter((_, at) => panels[at]?.log)) || undefined,
  };
}

/** A name for each of some panels, which stays while others change: that of its metric, else all that it shows. */
export function namesOf(panels: readonly Panel[]): readonly string[] {
  const count = new Map<string, number>();
  return panels.map((panel) => {
    const { columns: _columns, height_px: _height, log: _log, tab: _tab, ...shown } = panel;
    const name = isPlain({ ...shown }) ? (metricOf(panel) ?? '') : JSON.stringify(shown);
    const n = (count.get(name) ?? 0) + 1;
    count.set(name, n);
    return n === 1 ? name : `${name} ${n}`;
  });
}

/** The names of the tabs, in the order of their first panels. */
export const tabsOf = (panels: readonly Panel[]): readonly string[] => [
  ...new Set(panels.flatMap(({ tab }) => tab ?? [])),
];

/** The panel in a tab; without one, in the first. */
export function inTab({ tab: _tab, ...panel }: Panel, tab: string | undefined): Panel {
  return tab === undefined ? panel : { ...panel, tab };
}

/** The names of the panels with a logarithmic scale, as in the address of other pages. */
export const logOf = (panels: readonly Panel[]): string | undefined =>
  joinNames(namesOf(panels).filter((_, at) => panels[at]?.log)) || undefined;

/** The panels, of which those of these names have a logarithmic scale. */
export function withLog(panels: readonly Panel[], log: string | undefined): readonly Panel[] {
  const chosen = new Set(splitNames(log ?? ''));
  const names = namesOf(panels);
  return panels.map(({ log: _log, ...panel }, at) =>
    chosen.has(names[at] ?? '') ? { ...panel, log: true } : panel,
  );
}
