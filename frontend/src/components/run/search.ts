/** The search parameters of the pages that list and compare runs, whose state a view saves. */
import { CENTRES, INTERVALS, X_AXES } from '@/api/series';
import { formatZoom, parseZoom } from '@/components/chart/curveView';
import {
  alsoByRestNames,
  checked,
  flag,
  idOf,
  list,
  nameList,
  nameOf,
  oneOf,
  protocol,
  runIds,
  type Unchecked,
  text,
} from '@/lib/search';

/** The fields by which the service sorts runs. */
const RUN_SORTS = [
  'created_at',
  'started_at',
  'ended_at',
  'name',
  'algorithm',
  'environment',
  'state',
  'host',
  'seed',
  'priority',
  'group',
  'project',
  'score',
  'best_return',
  'agent_steps',
  'frames',
  'episodes',
  'wall_time_s',
  'agent_steps_per_s',
  'device',
  'annealing_agent_steps',
  /** Of groups: the number of runs. */
  'n',
].flatMap((field) => [field, `-${field}`]);

const RUN_SORT_SET: ReadonlySet<string> = new Set(RUN_SORTS);

/** A setting such as `config.learning_rate`, or a metric such as `loss/value.mean`. */
const SETTING_OR_METRIC = /^-?[^./]*[./].{1,220}$/u;

const runSort = (value: unknown): string | undefined => {
  const sort = text(value);
  return sort && (RUN_SORT_SET.has(sort) || SETTING_OR_METRIC.test(sort)) ? sort : undefined;
};

/** A setting such as `config.learning_rate`; those of external runs may have any name. */
const SETTING = /^[A-Za-z_]+\..{1,100}$/u;

const RUN_GROUPS: ReadonlySet<string> = new Set([
  'seed',
  'algorithm',
  'environment',
  'group',
  'state',
  'host',
  'queue',
  'device',
  'annealing_agent_steps',
]);

/** What runs are grouped by: a field, or a setting. */
const runGroup = (value: unknown): string | undefined => {
  const group = text(value);
  return group && (RUN_GROUPS.has(group) || SETTING.test(group)) ? group : undefined;
};

export const runsSearch = alsoByRestNames({ filter: 'q' }, (search) =>
  checked({
    q: text(search.q),
    project: nameOf(search.project),
    state: text(search.state),
    sort: runSort(search.sort),
    archived: flag(search.archived),
    group: runGroup(search.group),
    /** Comma-separated ids of the selected runs, or keys of the selected groups; `*`: everything that matches. */
    selected: text(search.selected),
    /** The columns in order, with changed widths, such as `name:220px`. */
    columns: nameList(search.columns),
  }),
);

const xAxis = (value: unknown) =>
  oneOf(
    value,
    X_AXES.map(({ id }) => id),
  );

const smoothing = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value < 1 ? value : undefined;

const positive = (value: unknown): number | undefined =>
  typeof value === 'number' && value > 0 && value <= 1e15 ? value : undefined;

/** A range of x, such as `1000..2000`. */
const zoom = (value: unknown): string | undefined => {
  const range = parseZoom(text(value));
  return range ? formatZoom(range) : undefined;
};

/** Numbers of the styles of several lines, separated by commas. */
export const styles = (value: unknown): string | undefined => {
  const numbers = text(value);
  return numbers && /^\d{1,2}(,\d{1,2}){0,99}$/.test(numbers) ? numbers : undefined;
};

/** How charts are shown. */
export const curveSearch = (search: Unchecked) => ({
  x: xAxis(search.x),
  smooth: smoothing(search.smooth),
  smoothing: oneOf(search.smoothing, ['ema', 'window'] as const),
  /** Width of the smoothing, in units of x. */
  scale: positive(search.scale),
  zoom: zoom(search.zoom),
  /** Charts with a logarithmic scale. */
  log: nameList(search.log),
});

/** In an address: no run or group is hidden. */
export const NONE_HIDDEN = 'none';

const SERIES_ID = /^\w{1,26}$/;

/** The valid ids of runs or groups of a list. */
const seriesIds = (value: unknown): string | undefined =>
  list(value)
    ?.split(',')
    .filter((id) => SERIES_ID.test(id))
    .join(',') || undefined;

const LIST_SORTS = ['name', '-name', 'n', '-n', 'score', '-score'] as const;
export type ListSort = (typeof LIST_SORTS)[number];

/** The order of compared runs or groups. */
export const listSort = (value: unknown): ListSort | undefined => oneOf(value, LIST_SORTS);

export const compareSearch = alsoByRestNames({ run: 'runs', metric: 'metrics', filter: 'q' }, (search) =>
  checked({
    runs: runIds(search.runs),
    /** Without `runs`: the filter of the runs, which later ones join. */
    q: text(search.q),
    /** Styles of the runs, in their order. */
    styles: styles(search.styles),
    /** Styles of groups, such as `0f3c5a7e:3`. */
    group_styles: nameList(search.group_styles),
    /** Runs or groups that are not drawn, or `none`; by default all but the best. */
    hidden: seriesIds(search.hidden),
    /** The order of the list of runs or groups. */
    sort: listSort(search.sort),
    /** Runs or groups that stay on top of it. */
    pins: seriesIds(search.pins),
    /** Whether the list stands beside the charts, or is hidden; without it, the page is the list alone. */
    list: oneOf(search.list, ['beside', 'hidden'] as const),
    ...curveSearch(search),
    /** Metrics with a panel each; by default the return. */
    metrics: nameList(search.metrics),
    /** Sizes of the panels, such as `loss/value:6x400`. */
    sizes: nameList(search.sizes),
    /** All panels, unchecked, where they are more than a metric each: they replace `metrics`, `sizes` and `log`. */
    panels: Array.isArray(search.panels) ? (search.panels as readonly unknown[]) : undefined,
    /** The open tab; without it the first, which has no name. */
    tab: nameOf(search.tab),
    group: oneOf(search.group, ['seed'] as const),
    centre: oneOf(search.centre, CENTRES),
    interval: oneOf(search.interval, INTERVALS),
    /** Whether each seed is drawn as a thin line. */
    seeds: flag(search.seeds),
    /** The setting against which scores are drawn. */
    setting: nameOf(search.setting),
    /** The score that is drawn against it; by default that of the list of runs. */
    drawn: oneOf(search.drawn, ['best_return'] as const),
    /** The score that statistics compare; by default, of training. */
    score: oneOf(search.score, ['evaluation'] as const),
    /** Where they compare it; by default, at the shortest run's length. */
    at: oneOf(search.at, ['end'] as const),
    /** The group with which the others are compared; by default, the first. */
    baseline: nameOf(search.baseline),
    /** Whether all pairs are compared in its place. */
    pairs: oneOf(search.pairs, ['all'] as const),
    /** Protocol of the compared evaluations; by default, that of each group. */
    protocol: protocol(search.protocol),
    threshold:
      typeof search.threshold === 'number' && Number.isFinite(search.threshold)
        ? search.threshold
        : undefined,
  }),
);

/** The state of the workspace: the list of runs alone, or what is compared. */
export const workspaceSearch = (search: Unchecked) =>
  checked({ ...compareSearch(search), ...runsSearch(search) });

/** The number of a saved state of a view. */
const version = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;

/** The state of the workspace, and what names the view. */
export const viewSearch = (search: Unchecked) =>
  checked({
    ...workspaceSearch(search),
    /** Name of the user whose view it is; by default, who opens it. */
    by: nameOf(search.by),
    /** Id of the named view that a state too long for an address differs from. */
    of: idOf(search.of),
    /** The saved version that the address has changed; without it, the state is the saved one. */
    changed: version(search.changed),
  });
