/** The state of a page as the document of a view, and back: what stands in an address can be saved. */
import { DEFAULT_SPREAD, type XAxis } from '@/api/series';
import type { ViewDocument, ViewSummary } from '@/api/views';
import { formatZoom, parseZoom } from '@/components/chart/curveView';
import {
  distinctStyles,
  formatGroupStyles,
  formatRunStyles,
  parseGroupStyles,
} from '@/components/chart/seriesStyles';
import { type Panel, panelOf, panelsOf, searchOfPanels } from '@/components/run/panels';
import { joinNames, splitNames } from '@/lib/names';
import {
  type compareSearch,
  listSort,
  NONE_HIDDEN,
  type runsSearch,
  type viewSearch,
  type workspaceSearch,
} from '@/components/run/search';
import { defined } from '@/lib/search';

export type RunsSearch = ReturnType<typeof runsSearch>;
export type CompareSearch = ReturnType<typeof compareSearch>;

/** A page with what its address says. */
export type PageState = { page: 'runs'; search: RunsSearch } | { page: 'compare'; search: CompareSearch };

export const EMPTY: ViewDocument = {
  version: 1,
  filter: '',
  state: 'all',
  archived: false,
  runs: [],
  list: 'alone',
  columns: null,
  sort: null,
  grouping: null,
  hidden: null,
  pins: [],
  baseline: null,
  colours: {},
  panels: [],
  curves: {
    x: 'agent_steps',
    smoothing: 'window',
    weight: null,
    scale: null,
    zoom: null,
    centre: DEFAULT_SPREAD.centre,
    interval: DEFAULT_SPREAD.interval,
    seeds: DEFAULT_SPREAD.seeds,
  },
  verdict: { score: 'training', at: 'common', protocol: null, threshold: null, pairs: 'baseline' },
};

const STATES: readonly string[] = ['active', 'finished', 'stopped', 'failed'];
/** A column of the address, such as `name:220px`. */
const COLUMN = /^(.+):(\d{2,3})px$/u;

const ids = (text: string | undefined): string[] => text?.split(',').filter(Boolean) ?? [];

/** The document of a page's state. Which rows are selected is not part of it. */
export const toDocument = ({ page, search }: PageState): ViewDocument =>
  page === 'runs' ? ofRuns(search) : ofCompare(search);

/**
 * The document of what a page shows, of its selected rows alone, if there are any: of runs by their ids; of groups the
 * keys stand beside it.
 */
export function shownDocument(state: PageState): { document: ViewDocument; groups: string[] } {
  const document = toDocument(state);
  if (state.page !== 'runs') return { document, groups: [] };
  const selected = ids(state.search.selected);
  if (state.search.group !== undefined)
    // What the list of groups has for the empty key.
    return { document, groups: selected.map((key) => (key === '!' ? '' : key)) };
  return { document: { ...document, runs: selected.includes('*') ? [] : selected }, groups: [] };
}

function ofRuns({ q, state, archived, group, sort, columns }: RunsSearch): ViewDocument {
  return {
    ...EMPTY,
    filter: q ?? '',
    state: (state !== undefined && STATES.includes(state) ? state : 'all') as ViewDocument['state'],
    archived: archived ?? false,
    sort: sort ?? null,
    grouping: group ?? null,
    columns:
      columns === undefined
        ? null
        : splitNames(columns).map((part) => {
            const [, field = part, width] = COLUMN.exec(part) ?? [];
            return { field, width_px: width === undefined ? null : Number(width) };
          }),
  };
}

function ofCompare(search: CompareSearch): ViewDocument {
  const runs = ids(search.runs);
  const styles = search.styles?.split(',') ?? [];
  const ofRuns = runs.flatMap((id, at) =>
    styles[at] === undefined ? [] : [[id, Number(styles[at])] as const],
  );
  const scatter =
    search.setting !== undefined || search.drawn !== undefined
      ? [
          {
            kind: 'scatter' as const,
            setting: search.setting ?? null,
            score: search.drawn ?? ('score' as const),
          },
        ]
      : [];
  const zoom = parseZoom(search.zoom);
  return {
    ...EMPTY,
    list: search.list ?? 'beside',
    filter: runs.length === 0 ? (search.q ?? '') : '',
    runs,
    hidden: search.hidden === undefined ? null : ids(search.hidden).filter((id) => id !== NONE_HIDDEN),
    sort: search.sort ?? null,
    grouping: search.group ?? null,
    pins: ids(search.pins),
    baseline: search.baseline ?? null,
    colours: Object.fromEntries([...ofRuns, ...parseGroupStyles(search.group_styles)]),
    panels: [...panelsOf(search), ...scatter] as ViewDocument['panels'],
    curves: {
      x: search.x ?? EMPTY.curves.x,
      smoothing: search.smoothing ?? (search.smooth === undefined ? 'window' : 'points'),
      weight: search.smooth ?? null,
      scale: search.scale ?? null,
      zoom: zoom && { start: zoom[0], end: zoom[1] },
      centre: search.centre ?? EMPTY.curves.centre,
      interval: search.interval ?? EMPTY.curves.interval,
      seeds: search.seeds ?? false,
    },
    verdict: {
      score: search.score ?? 'training',
      at: search.at ?? 'common',
      protocol: search.protocol ?? null,
      threshold: search.threshold ?? null,
      pairs: search.pairs ?? 'baseline',
    },
  };
}

/** The state of the page that shows a document. */
export const toState = (document: ViewDocument): PageState =>
  document.list === 'alone'
    ? { page: 'runs', search: toRuns(document) }
    : { page: 'compare', search: toCompare(document) };

/** The value unless it is the default, which stands in no address. */
const unless = <T>(standard: T, value: T): T | undefined => (value === standard ? undefined : value);

function toRuns({ filter, state, archived, sort, grouping, columns }: ViewDocument): RunsSearch {
  return defined({
    q: filter || undefined,
    state: unless('all', state),
    archived: archived || undefined,
    sort: sort ?? undefined,
    group: grouping ?? undefined,
    columns: columns
      ? joinNames(columns.map(({ field, width_px }) => (width_px == null ? field : `${field}:${width_px}px`)))
      : undefined,
  });
}

/** The scatter plot below the other panels, which has no place among them, and these. */
function split(panels: readonly Panel[]): [Panel | undefined, readonly Panel[]] {
  const below = panels.find(
    ({ kind, columns, tab }) => kind === 'scatter' && columns === undefined && tab === undefined,
  );
  return [below, panels.filter((panel) => panel !== below)];
}

function toCompare(document: ViewDocument): CompareSearch {
  const { filter, runs, hidden, grouping, baseline, colours, panels, curves, verdict } = document;
  const [below, placed] = split(panels.flatMap((panel) => panelOf(panel) ?? []));
  const styles = new Map(Object.entries(colours));
  const ofRuns = runs.some((id) => styles.has(id)) ? formatRunStyles(distinctStyles(runs, styles)) : '';
  const { x, smoothing, weight, scale, zoom, centre, interval, seeds } = curves;
  return defined({
    runs: runs.join(',') || undefined,
    q: runs.length === 0 ? filter || undefined : undefined,
    styles: ofRuns || undefined,
    group_styles: formatGroupStyles(new Map([...styles].filter(([id]) => !runs.includes(id)))) || undefined,
    hidden: hidden ? hidden.join(',') || NONE_HIDDEN : undefined,
    sort: listSort(document.sort),
    pins: document.pins?.join(',') || undefined,
    list: document.list === 'hidden' ? document.list : 'beside',
    x: unless<XAxis>(EMPTY.curves.x, x),
    smooth: smoothing === 'points' ? (weight ?? undefined) : undefined,
    smoothing: smoothing === 'ema' ? smoothing : undefined,
    scale: scale ?? undefined,
    zoom: zoom ? formatZoom([zoom.start, zoom.end]) : undefined,
    ...searchOfPanels(placed),
    group: grouping === 'seed' ? grouping : undefined,
    centre: unless(EMPTY.curves.centre, centre),
    interval: unless(EMPTY.curves.interval, interval),
    seeds: seeds || undefined,
    setting: below?.setting,
    drawn: below?.score,
    score: verdict.score === 'evaluation' ? verdict.score : undefined,
    at: verdict.at === 'end' ? verdict.at : undefined,
    baseline: baseline ?? undefined,
    pairs: verdict.pairs === 'all' ? verdict.pairs : undefined,
    protocol: verdict.protocol ?? undefined,
    threshold: verdict.threshold ?? undefined,
  });
}

/** Whether a page shows something else than a saved document. */
export const differs = (state: PageState, saved: ViewDocument): boolean =>
  JSON.stringify(toDocument(state)) !== JSON.stringify(toDocument(toState(saved)));

/** Longer addresses are cut by programs that pass them on. */
const MAX_ADDRESS = 2000;

/** Whether the state of a page is too long for an address. */
export function isTooLong({ search }: PageState): boolean {
  const parameters = Object.entries(defined(search)).filter(([name]) => name !== 'selected');
  const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  return (
    new URLSearchParams(parameters.map(([name, value]) => [name, asText(value)])).toString().length >
    MAX_ADDRESS
  );
}

const MAX_SUGGESTED = 60;

/** A name for a view, to start from. */
export function suggestedName(document: ViewDocument, taken: ReadonlySet<string>): string {
  const words = document.filter
    .replaceAll(/["\\/]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/^\.+/, '');
  const first = words.slice(0, MAX_SUGGESTED).trim() || (document.list === 'alone' ? 'Runs' : 'Comparison');
  if (!taken.has(first)) return first;
  let n = 2;
  while (taken.has(`${first} ${n}`)) n += 1;
  return `${first} ${n}`;
}

/** Why a typed text is no name of a view; null if it is, or empty. */
export const nameProblem = (typed: string): string | null =>
  typed.length > 100
    ? 'At most 100 characters.'
    : typed.startsWith('.') || /["\\/]/.test(typed)
      ? 'A name has no double quotes, backslashes and slashes, and begins with no dot.'
      : null;

/** The address of a view: under its name, with its project and, of another user, its owner. */
export const linkTo = ({ id, name, project, mine, owner }: ViewSummary) =>
  ({
    to: '/w/$view',
    params: { view: name ?? id },
    search: defined({ project: project ?? undefined, by: mine ? undefined : owner }),
  }) as const;

/** The address of a page in a state that has no name. */
export const plainLink = (state: PageState, project: string | undefined) =>
  state.page === 'runs'
    ? ({ to: '/', search: defined({ ...state.search, project }) } as const)
    : ({ to: '/', search: { ...state.search, list: state.search.list ?? 'beside' } } as const);

/** The parameters of an address of the workspace, or of a view. */
type Address = ReturnType<typeof workspaceSearch> & Partial<ReturnType<typeof viewSearch>>;

/** The state in an address, which has the parameters of the list and of what is compared. */
export function stateOf(address: Address): PageState {
  if (address.list === undefined) {
    const { q, state, sort, archived, group, selected, columns } = address;
    return { page: 'runs', search: defined({ q, state, sort, archived, group, selected, columns }) };
  }
  const { state, sort, archived, group, selected, columns, project, by, of, changed, ...search } = address;
  const own = { ...search, sort: listSort(sort), group: group === 'seed' ? ('seed' as const) : undefined };
  return { page: 'compare', search: defined(own) };
}
