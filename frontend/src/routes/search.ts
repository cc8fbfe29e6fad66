/** What each page keeps in its address, so that copying the address shares the view. */

import type { Defined } from '@/lib/defined';

type Search = Record<string, unknown>;

/**
 * What a page makes of an address. Fields without a value stay in it, as undefined: where one is left out, the
 * router goes on with what the address says, however wrong.
 */
const page = <T extends object>(fields: T): Defined<T> => fields;

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined;

function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((each) => each === value);
}

const RUN_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** Those of the ids, with commas between, that can be a run's. */
const runIds = (value: unknown): string | undefined =>
  text(value)
    ?.split(',')
    .filter((id) => RUN_ID.test(id))
    .join(',') || undefined;

/** What the service sorts runs by. */
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
  'score',
  'best_return',
  'agent_steps',
  'frames',
  'episodes',
  'wall_time_s',
  'agent_steps_per_s',
].flatMap((field) => [field, `-${field}`]);

export const RUN_GROUPS = ['seed', 'algorithm', 'environment'] as const;

export const runsSearch = (search: Search) =>
  page({
    q: text(search.q),
    state: text(search.state),
    sort: oneOf(search.sort, RUN_SORTS),
    archived: search.archived === true ? true : undefined,
    group: oneOf(search.group, RUN_GROUPS),
    selected: text(search.selected),
  });

export const newRunSearch = (search: Search) =>
  page({
    from: text(search.from),
    fork: text(search.fork),
    checkpoint: text(search.checkpoint),
    environment: text(search.environment),
    algorithm: text(search.algorithm),
  });

export const X_AXES = ['agent_steps', 'frames', 'wall_time_s', 'episodes'] as const;
export const RUN_TABS = [
  'curves',
  'episodes',
  'internals',
  'evaluations',
  'checkpoints',
  'settings',
  'log',
  'system',
] as const;

const smoothing = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value < 1 ? value : undefined;

export const runSearch = (search: Search) =>
  page({
    tab: oneOf(search.tab, RUN_TABS),
    x: oneOf(search.x, X_AXES),
    smooth: smoothing(search.smooth),
    episode: text(search.episode),
    level: oneOf(search.level, ['debug', 'info', 'warning', 'error'] as const),
    find: text(search.find),
    log: search.log === true ? true : undefined,
    best: search.best === true ? true : undefined,
    changed: search.changed === true ? true : undefined,
  });

export const replaySearch = (search: Search) =>
  page({ at: typeof search.at === 'number' && search.at >= 0 ? Math.floor(search.at) : undefined });

export const compareSearch = (search: Search) =>
  page({
    runs: runIds(search.runs),
    hidden: runIds(search.hidden),
    log: search.log === true ? true : undefined,
    x: oneOf(search.x, X_AXES),
    smooth: smoothing(search.smooth),
    group: oneOf(search.group, ['seed'] as const),
    score: oneOf(search.score, ['evaluation'] as const),
    at: oneOf(search.at, ['end'] as const),
    threshold:
      typeof search.threshold === 'number' && Number.isFinite(search.threshold)
        ? search.threshold
        : undefined,
  });

export const worldsSearch = (search: Search) => page({ q: text(search.q), family: text(search.family) });

/** An address of this site, and of no other. */
const ownAddress = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\/(?![/\\])/.test(value) ? value : undefined;

export const loginSearch = (search: Search) =>
  page({ from: ownAddress(search.from), expired: search.expired === true ? true : undefined });
