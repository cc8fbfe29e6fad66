/** What each page keeps in its address, so that copying the address shares the view. */

import { defined } from '@/lib/defined';

type Search = Record<string, unknown>;

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined;

function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((each) => each === value);
}

export const RUN_GROUPS = ['seed', 'algorithm', 'environment'] as const;

export const runsSearch = (search: Search) =>
  defined({
    q: text(search.q),
    state: text(search.state),
    sort: text(search.sort),
    archived: search.archived === true ? true : undefined,
    group: oneOf(search.group, RUN_GROUPS),
    selected: text(search.selected),
  });

export const newRunSearch = (search: Search) =>
  defined({
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
  defined({
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
  defined({ at: typeof search.at === 'number' && search.at >= 0 ? Math.floor(search.at) : undefined });

export const compareSearch = (search: Search) =>
  defined({
    runs: text(search.runs),
    hidden: text(search.hidden),
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

export const worldsSearch = (search: Search) => defined({ q: text(search.q), family: text(search.family) });

/** An address of this site, and of no other. */
const ownAddress = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\/(?![/\\])/.test(value) ? value : undefined;

export const loginSearch = (search: Search) =>
  defined({ from: ownAddress(search.from), expired: search.expired === true ? true : undefined });
