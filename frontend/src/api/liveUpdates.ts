import { onlineManager, type Query, type QueryClient, type QueryFilters } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { api, onRequest, renewTicket } from './client';
import { EventStream, type Connection, type LiveEvent } from './eventStream';
import { keys } from './keys';
import { ApiProblem } from './problem';
import { pagesOf, refetchRunsInLists, runQuery, updateRunsInLists, type CachedRuns } from './runs';
import { hasMember, type SweepDetail } from './sweeps';

/** First elements of the keys of queries that are refetched after a gap in the events. */
const RESYNCED: ReadonlySet<string> = new Set([
  'runs',
  'run',
  'series',
  'metrics',
  'comparison',
  'hosts',
  'sweeps',
  'sweep',
  'papers',
  'study',
]);

/** Routine events, such as new points, are applied at most this often, however many arrive. */
const FLUSH_MS = 3000;
/** What changes slowly is refetched for routine events at most this often. */
export const SLOW_MS = 10_000;
/** Changes of a run's state or of its own fields, and of jobs, sweeps and studies, are applied within this time. */
const URGENT_MS = 250;
/** How often the ticket is checked that authorises addresses of images and streams. */
const RENEWAL_CHECK_MS = 60_000;

let connection: Connection = { status: 'connecting', lastEventAt: null };
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The state of the event stream. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection);
}

/** Up to this many changed runs are fetched one by one; beyond it the lists are refetched. */
const MAX_SINGLE_RUNS = 3;
/** Filters and sorting may depend on any field of a run, so lists are refetched at most this long after an event. */
const REFETCH_LISTS_MS = 15_000;
/** A list scrolled beyond this many pages is not refetched while it is being read: its changed runs are. */
const MAX_PAGES = 5;

/** Queries to be fetched once more after what is on its way. */
const fetchedAgain = new WeakSet<Query>();

/**
 * Refetches queries. A request under way is not cancelled, or an answer slower than the events would never arrive.
 * As it may have left before the event, its query is fetched once more afterwards.
 */
async function refetch(client: QueryClient, filters: QueryFilters): Promise<void> {
  const idle = new Set<Query>();
  for (const query of client.getQueryCache().findAll(filters)) {
    if (query.state.fetchStatus !== 'fetching') idle.add(query);
    else if (!fetchedAgain.has(query)) {
      fetchedAgain.add(query);
      // While a query is fetched, `fetch` starts nothing: it is the promise of the answer.
      void query
        .fetch()
        .catch(() => undefined)
        .then(() => {
          fetchedAgain.delete(query);
          return client.invalidateQueries({ queryKey: query.queryKey, exact: true });
        });
    }
  }
  await client.invalidateQueries({ predicate: (query) => idle.has(query) });
}

/** By run id, the state of its latest event. */
const states = new Map<string, string>();
let listsRefetchedAt = -REFETCH_LISTS_MS;
let laterRefetch: ReturnType<typeof setTimeout> | undefined;

/** How long ago the page was requested, at least: one clock may stop while the machine sleeps, the other be set back. */
const pageAgeMs = (): number => Math.max(performance.now(), Date.now() - performance.timeOrigin);

/** Whether the service has refused a query, such as a filter with a mistyped field: it would only do so again. */
export const isRefused = ({ state: { error } }: Pick<Query, 'state'>): boolean =>
  error instanceof ApiProblem && error.status === 422;

const pagesIn = (query: Query) => pagesOf(query.state.data as CachedRuns | undefined);

const isLong = (query: Query): boolean => pagesIn(query).length > MAX_PAGES;

/** Of these runs, the ids of those that a long list contains. */
function inLongLists(client: QueryClient, ids: Iterable<string>): string[] {
  const lists = client.getQueryCache().findAll({ queryKey: keys.allRuns(), predicate: isLong });
  const contained = new Set(lists.flatMap(pagesIn).flatMap(({ items }) => items.map(({ id }) => id)));
  return [...ids].filter((id) => contained.has(id));
}

/** Updates the lists of runs with as few requests as possible. */
async function updateLists(client: QueryClient, events: readonly LiveEvent[]): Promise<void> {
  const changed = new Map(
    events
      .filter(({ job }) => job === undefined)
      .flatMap(({ run, state }) => (run && state ? [[run, state]] : [])),
  );
  if (changed.size === 0) return;
  const stateChanged = [...changed].some(([run, state]) => states.get(run) !== state);
  for (const [run, state] of changed) states.set(run, state);
  if (
    stateChanged ||
    changed.size > MAX_SINGLE_RUNS ||
    performance.now() - listsRefetchedAt > REFETCH_LISTS_MS
  ) {
    await Promise.all([
      refetchShortLists(client),
      refetchRunsInLists(client, inLongLists(client, changed.keys())),
    ]);
    return;
  }
  laterRefetch ??= setTimeout(
    () => void refetchShortLists(client),
    listsRefetchedAt + REFETCH_LISTS_MS - performance.now(),
  );
  for (const id of changed.keys()) {
    const run = await client.query({ ...runQuery(id), staleTime: 0 }).catch(() => undefined);
    if (run) updateRunsInLists(client, [run]); // without it, the lists follow when they are refetched
  }
}

async function refetchShortLists(client: QueryClient): Promise<void> {
  clearTimeout(laterRefetch);
  laterRefetch = undefined;
  listsRefetchedAt = performance.now();
  await refetch(client, {
    queryKey: keys.allRuns(),
    predicate: (query) => !isRefused(query) && !isLong(query),
  });
}

/** What changes the evaluations of a run. */
const EVALUATED = ['evaluations', 'job evaluation'];

/** What has to change for a resource of a run to be refetched; a resource that is not listed is refetched
 * on any change, and an event that names no changes refetches all. `job <kind>`: a job of the run. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  episodes: ['episodes', 'job video'],
  episode: ['job video'],
  branches: ['job branch'],
  saliency: ['job saliency'],
  video: ['job video'],
  evaluations: EVALUATED,
  marks: [...EVALUATED, 'step_notes'],
  checkpoints: ['checkpoints'],
  videos: ['videos', 'job encode'],
  'sent-video': ['videos', 'job encode'],
  protocols: [],
  settings: [],
  'step-notes': ['step_notes'],
  log: ['log'],
  'series-names': ['metrics'],
  panels: ['metrics'],
};

/** States of a job that has ended. */
const ENDED: ReadonlySet<string> = new Set(['done', 'failed']);

/** The job that a missing thumbnail waits for. */
const jobOf = (data: unknown): string | undefined => (data as { job?: string } | undefined)?.job;

const sectionOf = (metric: unknown): string => `series/${String(metric).split('/')[0] ?? ''}`;

/**
 * Whether a query, with the data that it has, shows something that an event has changed. An event that names no
 * changes may have changed anything.
 */
export function isAffected(queryKey: readonly unknown[], event: LiveEvent, data?: unknown): boolean {
  // The third is a resource's name, the score of a comparison, or the metrics of series.
  const [kind, idOrIds, name] = queryKey;
  if (kind === 'hosts') return event.host !== undefined;
  if (kind === 'sweeps') return event.sweep !== undefined;
  if (kind === 'papers') return event.study !== undefined;
  // A study that has ended sends no more events; its runs may go on.
  if (kind === 'study')
    return event.study === idOrIds || (event.run !== undefined && event.job === undefined && !event.changed);
  // A job without a run verifies a start set, or renders a recorded game.
  if (kind === 'start-sets') return event.job !== undefined && event.run === undefined;
  if (kind === 'sweep' && event.sweep !== undefined) return idOrIds === event.sweep;
  if (event.run === undefined) return false;
  if (kind === 'thumbnail')
    return ENDED.has(event.state ?? '') && event.job !== undefined && event.job === jobOf(data);
  // A job belongs to a run, but does not change the run itself.
  const changed = event.job === undefined ? event.changed : [`job ${event.kind}`];
  if (kind === 'metrics') return queryKey.includes(event.run) && (!changed || changed.includes('metrics'));
  if (kind === 'comparison') {
    if (!Array.isArray(idOrIds) || !idOrIds.includes(event.run)) return false;
    // Scores of training change all the time: they are refetched at an interval, and at the end.
    return !changed || (name === 'evaluation' && EVALUATED.some((part) => changed.includes(part)));
  }
  if (kind === 'sweep')
    return changed === undefined && data !== undefined && hasMember(data as SweepDetail, event.run);
  if (kind === 'run') {
    if (idOrIds !== event.run) return false;
    if (typeof name !== 'string') return event.job === undefined;
    const parts = PARTS[name];
    return !changed || !parts || parts.some((part) => changed.includes(part));
  }
  if (kind !== 'series' || !Array.isArray(idOrIds) || !idOrIds.includes(event.run)) return false;
  const metrics: readonly unknown[] = Array.isArray(name) ? name : [];
  return !changed || metrics.some((metric) => changed.includes(sectionOf(metric)));
}

/** Whether a resource of a run shows little more after a few seconds: names of metrics, and a film strip (`spread`). */
function isSlow([kind, , name, variant]: readonly unknown[]): boolean {
  if (kind !== 'run') return false;
  return name === 'panels' || name === 'series-names' || variant === 'spread';
}

/** Whether data shows nothing: its first items are worth a request of their own. */
const isBlank = (data: unknown): boolean => {
  const items = Array.isArray(data) ? data : (data as { items?: unknown[] } | undefined)?.items;
  return items === undefined || items.length === 0;
};

/** Refetches, once their data is old enough, slow queries that routine events have affected. */
export class Postponed {
  readonly #waiting = new Map<string, { timer: ReturnType<typeof setTimeout>; since: number }>();

  constructor(private readonly client: QueryClient) {}

  /** Schedules a later refetch of a query that a routine event affects, if the query is slow; returns whether it did. */
  postpone(query: Query): boolean {
    const { queryHash, queryKey, state } = query;
    // What is on its way may have left before the event.
    if (state.fetchStatus !== 'idle') return false;
    const since = state.dataUpdatedAt;
    const delayMs = Math.min(SLOW_MS, since + SLOW_MS - Date.now()); // the clock may have been set back
    if (!isSlow(queryKey) || !query.isActive() || isBlank(state.data) || delayMs <= 0) return false;
    const waiting = this.#waiting.get(queryHash);
    if (waiting?.since === since) return true;
    clearTimeout(waiting?.timer);
    const timer = setTimeout(() => {
      this.#waiting.delete(queryHash);
      // What was refetched meanwhile, as at the end of its run, is complete.
      if (query.state.dataUpdatedAt === since && !query.state.isInvalidated)
        void this.client.invalidateQueries({ queryKey, exact: true });
    }, delayMs);
    this.#waiting.set(queryHash, { timer, since });
    return true;
  }

  stop(): void {
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }
}

/** Refetches the queries on screen that the events affect, slow ones later; others once they are shown. */
async function applyEvents(
  client: QueryClient,
  postponed: Postponed,
  events: readonly LiveEvent[],
): Promise<void> {
  const predicate = (query: Query): boolean => {
    const affecting = events.filter((event) => isAffected(query.queryKey, event, query.state.data));
    return affecting.length > 0 && !(affecting.every(isRoutine) && postponed.postpone(query));
  };
  await Promise.all([refetch(client, { predicate }), updateLists(client, events)]);
}

/** Whether an event is a host's heartbeat, or names the parts of a run that have changed, as most do while it trains. */
const isRoutine = ({ changed, host }: LiveEvent): boolean => changed !== undefined || host !== undefined;

/** Events of one kind, applied together at most once in `intervalMs`. */
class Batch {
  #events: LiveEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushedAt = -Infinity;

  constructor(
    private readonly intervalMs: number,
    private readonly apply: (events: readonly LiveEvent[]) => void,
  ) {}

  add(event: LiveEvent): void {
    this.#events.push(event);
    this.#timer ??= setTimeout(
      () => this.#flush(),
      Math.max(0, this.#flushedAt + this.intervalMs - performance.now()),
    );
  }

  /** Drops the events of a run: an urgent one, which is applied now, makes them superfluous. */
  drop(run: string): void {
    this.#events = this.#events.filter((event) => event.run !== run);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #flush(): void {
    this.#timer = undefined;
    const events = this.#events;
    this.#events = [];
    if (events.length === 0) return;
    this.#flushedAt = performance.now();
    this.apply(events);
  }
}

/** Keeps the query cache up to date from the event stream; returns a function that stops it. */
export function startLiveUpdates(client: QueryClient): () => void {
  const postponed = new Postponed(client);
  const apply = (events: readonly LiveEvent[]): void => {
    // A query that fails shows its error where it is used.
    void applyEvents(client, postponed, events).catch(() => undefined);
  };
  const routine = new Batch(FLUSH_MS, apply);
  // Urgent events do not flush the routine ones: the end of a thumbnail's job is no reason to refetch charts early.
  const urgent = new Batch(URGENT_MS, (events) => {
    for (const { run, job } of events) if (run !== undefined && job === undefined) routine.drop(run);
    apply(events);
  });
  const stream = new EventStream({
    onEvent: (event) => (isRoutine(event) ? routine : urgent).add(event),
    onResync: (quietMs) => {
      // If nothing has changed since the page was requested, answers that came before the stream are current too.
      const isQuiet = quietMs > pageAgeMs();
      void client.invalidateQueries({
        predicate: (query) =>
          RESYNCED.has(String(query.queryKey[0])) &&
          !isRefused(query) &&
          !(isQuiet && query.state.status === 'success'),
      });
    },
    onConnection: (next) => {
      connection = next;
      // A service on this machine answers without a network, for which queries and mutations would wait.
      if (next.status === 'live') onlineManager.setOnline(true);
      if (next.status === 'offline') onlineManager.setOnline(false);
      for (const listener of listeners) listener();
    },
    probe: (signal) => api.GET('/api/v1/auth/me', { signal }),
  });
  onRequest((answered) => stream.onRequest(answered));
  stream.start();
  const renewal = setInterval(() => void renewTicket().catch(() => undefined), RENEWAL_CHECK_MS);
  return () => {
    routine.stop();
    urgent.stop();
    postponed.stop();
    clearTimeout(laterRefetch);
    laterRefetch = undefined;
    clearInterval(renewal);
    stream.stop();
  };
}
