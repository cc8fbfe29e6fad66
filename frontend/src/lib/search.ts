/** The search parameters of each page: its URL holds filters and selection, so that a copied URL shares the view. */
import { CENTRES, INTERVALS, X_AXES } from '@/api/series';
import { formatZoom, parseZoom } from '@/components/chart/curveView';
import { joinNames, splitNames } from './names';

/** A type whose fields are optional but never undefined when present. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that have a value, which keeps URLs short. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

type Search = Record<string, unknown>;

/**
 * Marks a page's parameters, each of which is checked already, as such. Fields without a value stay present as
 * undefined, although the type says that they are missing: for a missing field the router would keep the raw
 * parameter of the URL.
 */
const checked = <T extends object>(fields: T): Defined<T> => fields;

/**
 * Reads a page's parameters also by the names that they have in REST, such as `{ run: 'runs' }`: people write addresses
 * with the names that they know from requests. The page's own name comes first, and alone stands in the address
 * afterwards.
 */
const alsoByRestNames =
  <T extends object>(names: Readonly<Record<string, string>>, read: (search: Search) => T) =>
  (search: Search): T => {
    const renamed = Object.fromEntries(Object.entries(names).map(([rest, own]) => [own, search[rest]]));
    const dropped = Object.fromEntries(Object.keys(names).map((rest) => [rest, undefined]));
    return { ...read({ ...renamed, ...defined(search) }), ...dropped };
  };

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined;

function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((choice) => choice === value);
}

const flag = (value: unknown): true | undefined => (value === true ? true : undefined);

/** The values of a comma-separated list, or of a repeated parameter. */
const list = (value: unknown): string | undefined =>
  Array.isArray(value) ? joinNames(value.flatMap((item) => text(item) ?? [])) : text(value);

const MAX_NAME_LENGTH = 220;

const nameOf = (value: unknown): string | undefined => {
  const name = text(value);
  return name !== undefined && name.length <= MAX_NAME_LENGTH ? name : undefined;
};

/** A list of names, such as of metrics, charts or columns. */
const nameList = (value: unknown): string | undefined =>
  joinNames(
    [...new Set(splitNames(list(value) ?? ''))]
      .filter((name) => name !== '' && name.length <= MAX_NAME_LENGTH)
      .slice(0, 100),
  ) || undefined;

const RUN_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** The valid run ids of a list. */
const runIds = (value: unknown): string | undefined =>
  list(value)
    ?.split(',')
    .filter((id) => RUN_ID.test(id))
    .join(',') || undefined;

/** The id of an evaluation protocol, which may name a start set and its version. */
const protocol = (value: unknown): string | undefined => {
  const id = text(value);
  return id && /^\w{1,50}(:[a-z0-9-]{1,24}(@\d{1,5})?)?$/.test(id) ? id : undefined;
};

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

export const newRunSearch = (search: Search) =>
  checked({
    from: text(search.from),
    fork: text(search.fork),
    checkpoint: text(search.checkpoint),
    environment: text(search.environment),
    algorithm: text(search.algorithm),
    /** Protocol of the run's evaluations. */
    protocol: protocol(search.protocol),
    /** Whether all hyperparameters are shown. */
    all: flag(search.all),
  });

const RUN_TABS = [
  'curves',
  'episodes',
  'diagnostics',
  'media',
  'evaluations',
  'checkpoints',
  'config',
  'log',
  'system',
] as const;

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
const styles = (value: unknown): string | undefined => {
  const numbers = text(value);
  return numbers && /^\d{1,2}(,\d{1,2}){0,99}$/.test(numbers) ? numbers : undefined;
};

/** How charts are shown. */
const curveSearch = (search: Search) => ({
  x: xAxis(search.x),
  smooth: smoothing(search.smooth),
  smoothing: oneOf(search.smoothing, ['ema', 'window'] as const),
  /** Width of the smoothing, in units of x. */
  scale: positive(search.scale),
  zoom: zoom(search.zoom),
  /** Charts with a logarithmic scale. */
  log: nameList(search.log),
});

export const runSearch = (search: Search) =>
  checked({
    tab: oneOf(search.tab, RUN_TABS),
    ...curveSearch(search),
    episode: text(search.episode),
    /** The selected video of an external run. */
    video: text(search.video),
    level: oneOf(search.level, ['debug', 'info', 'warning', 'error'] as const),
    find: text(search.find),
    /** Whether episodes are listed best first. */
    best: flag(search.best),
    /** Whether only settings that differ from their defaults are listed. */
    changed: flag(search.changed),
    /** The agent step whose media are shown; by default the latest. */
    step: typeof search.step === 'number' && search.step >= 0 ? Math.floor(search.step) : undefined,
    /** Style of the run's lines, as on the page that links here. */
    style: styles(search.style)?.split(',')[0],
  });

export const alertsSearch = (search: Search) =>
  checked({
    /** Whether only unread alerts are listed. */
    unread: flag(search.unread),
    /** The run that a new rule is about. */
    run: RUN_ID.test(text(search.run) ?? '') ? text(search.run) : undefined,
  });

export const replaySearch = (search: Search) =>
  checked({
    at: typeof search.at === 'number' && search.at >= 0 ? Math.floor(search.at) : undefined,
    /** The branch whose fan is shown. */
    branch: RUN_ID.test(text(search.branch) ?? '') ? text(search.branch) : undefined,
  });

export const compareSearch = alsoByRestNames({ run: 'runs', metric: 'metrics', filter: 'q' }, (search) =>
  checked({
    runs: runIds(search.runs),
    /** Without `runs`: the filter of the runs, which later ones join. */
    q: text(search.q),
    /** Styles of the runs, in their order. */
    styles: styles(search.styles),
    /** Styles of groups, such as `0f3c5a7e:3`. */
    group_styles: nameList(search.group_styles),
    hidden: runIds(search.hidden),
    ...curveSearch(search),
    /** Metrics with a panel each; by default the return. */
    metrics: nameList(search.metrics),
    /** Sizes of the panels, such as `loss/value:6x400`. */
    sizes: nameList(search.sizes),
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

/** The state of either page, and what names the view. */
export const viewSearch = (search: Search) =>
  checked({
    ...compareSearch(search),
    ...runsSearch(search),
    /** Name of the user whose view it is; by default, who opens it. */
    by: nameOf(search.by),
    /** Id of the named view that a state too long for an address differs from. */
    of: RUN_ID.test(text(search.of) ?? '') ? text(search.of) : undefined,
    /** Whether the state is that of the address; otherwise it is the saved one. */
    changed: flag(search.changed),
  });

/** A column of the configurations: a setting such as `config.learning_rate`, or a name; `-`: descending. */
const CONFIGURATION_SORT = /^-?[a-z_]+(\.\w+)?$/;

export const sweepSearch = (search: Search) =>
  checked({
    sort: CONFIGURATION_SORT.test(text(search.sort) ?? '') ? text(search.sort) : undefined,
    /** The setting against which scores are drawn. */
    setting: nameOf(search.setting),
    /** Whether the axis of this setting is logarithmic; by default, if the values span a wide range. */
    log: typeof search.log === 'boolean' ? search.log : undefined,
  });

const MAX_SEEDS = 100;

export const scoresSearch = alsoByRestNames({ column: 'columns', min_seeds: 'seeds' }, (search) =>
  checked({
    q: text(search.q),
    family: text(search.family),
    protocol: protocol(search.protocol),
    /** Ids of the shown columns. */
    columns: nameList(search.columns),
    /** How many runs a score needs at least. */
    seeds:
      Number.isInteger(search.seeds) && Number(search.seeds) >= 1 && Number(search.seeds) <= MAX_SEEDS
        ? Number(search.seeds)
        : undefined,
    normalised: flag(search.normalised),
  }),
);

export const playSearch = (search: Search) =>
  checked({
    environment: text(search.environment),
    /** Id of the run whose agent can act in the session. */
    agent: text(search.agent),
    /** Whether a script drives the browser, so that its games are recorded as scripted. */
    scripted: flag(search.scripted),
  });

/** Whether text of digits is a day of the calendar; some browsers take 30 February for 2 March. */
const isDay = (text: string): boolean => {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
};

/**
 * A day, such as `2026-11-22`. The service accepts the years 1970 to 9998; the first and the last of them are left out,
 * since in another time zone they begin or end outside.
 */
const day = (value: unknown): string | undefined =>
  typeof value === 'string' &&
  /^\d{4}-\d{2}-\d{2}$/.test(value) &&
  value >= '1971' &&
  value < '9998' &&
  isDay(value)
    ? value
    : undefined;

export const auditSearch = (search: Search) =>
  checked({
    user: text(search.user),
    action: text(search.action),
    address: text(search.address),
    /** First and last day, in the browser's time zone. */
    from: day(search.from),
    to: day(search.to),
  });

/** A URL of this site. Browsers read `//host` and `/\host` as other sites, and drop tabs and line breaks. */
const SAME_SITE_URL = /^\/(?![/\\])[^\\\x00-\x20\x7f]*$/; // eslint-disable-line no-control-regex

const sameSiteUrl = (value: unknown): string | undefined =>
  typeof value === 'string' && SAME_SITE_URL.test(value) ? value : undefined;

/** Why a sign-in by OpenID Connect did not succeed, as the service reports it. */
export const SIGN_IN_ERRORS = [
  'denied',
  'expired',
  'failed',
  'name_taken',
  'no_role',
  'unavailable',
  'unknown',
  'wait',
] as const;

export type SignInError = (typeof SIGN_IN_ERRORS)[number];

export const loginSearch = (search: Search) =>
  checked({
    from: sameSiteUrl(search.from),
    /** Whether an invalid one-time link led here. */
    expired: flag(search.expired),
    /** Whether this browser has lost the secret of its session. */
    lost: flag(search.lost),
    error: oneOf(search.error, SIGN_IN_ERRORS),
  });
