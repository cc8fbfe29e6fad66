import { onlineManager, type Query, type QueryClient, type QueryFilters } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react';
import { api, onRequest, renewTicket } from './client';
import { EventStream, type Connection, type LiveEvent } from './eventStream';
import { keys, UNWATCHED, type Key } from './keys';
import { ApiProblem } from './problem';
import { pagesOf, refetchRunsInLists, runQuery, updateRunsInLists, type CachedRuns } from './runs';

/** Routine events, such as new points, are applied at most this often, however many arrive. */
const FLUSH_MS = 3000;
/** What changes slowly is refetched for routine events at most this often. */
export const SLOW_MS = 10_000;
/** Changes of a run's state or of its own fields, and of jobs, sweeps and studies, are applied within this time. */
const URGENT_MS = 250;
/** How often the ticket is checked that authorises addresses of images and streams. */
const RENEWAL_CHECK_MS = 60_000;

const UNCONNECTED: Connection = { status: 'connecting', lastEventAt: null };
let connection = UNCONNECTED;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The state of the event stream. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection);
}

/** Calls back each time the service can be reached again. */
export function useReconnection(onReconnection: () => void): void {
  const { status } = useConnection();
  const wasLost = useRef(false);
  const reconnected = useEffectEvent(onReconnection);
  useEffect(() => {
    if (status === 'live' && wasLost.current) reconnected();
    wasLost.current = status === 'reconnecting' || status === 'offline';
  }, [status]);
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
const states = new Map<string, string | null>();
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
  const changed = new Map(events.filter(({ kind }) => kind === 'run').map(({ id, state }) => [id, state]));
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

const matches = (part: unknown, changed: string): boolean =>
  part === changed || changed.startsWith(`${String(part)}/`);

/** Whether an event of one thing, or of what belongs to it, changes what a key shows. */
export function isAffected(
  [kind, ids, parts]: Key,
  { kind: ofKind, id, parents, changed }: LiveEvent,
): boolean {
  const isOne = (other: string | undefined): boolean =>
    other !== undefined && (ids === null || ids === other || (Array.isArray(ids) && ids.includes(other)));
  const named = Array.isArray(parts) ? parts : typeof parts === 'string' ? [parts] : undefined;
  const shows = (names: readonly unknown[]): boolean =>
    changed.length === 0 || names.some((part) => changed.some((name) => matches(part, name)));
  if (kind === ofKind && isOne(id)) return named === undefined || shows(named);
  // What belongs to a thing changes parts of it, not the thing itself.
  return isOne(parents[String(kind)]) && shows(named ?? []);
}

/** Whether an event changes a query, by its key or by what it depends on. */
const isQueryAffected = ({ queryKey, meta, state }: Query, event: LiveEvent): boolean =>
  [queryKey, ...(meta?.dependsOn?.(state.data) ?? [])].some((key) => isAffected(key, event));

/** Whether a query is a list of runs, which `updateLists` keeps up to date with fewer requests. */
const isListOfRuns = ({ queryKey }: Query): boolean =>
  keys.allRuns().every((part, at) => queryKey[at] === part);

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
    const { queryHash, queryKey, meta, state } = query;
    // What is on its way may have left before the event.
    if (state.fetchStatus !== 'idle') return false;
    const since = state.dataUpdatedAt;
    const delayMs = Math.min(SLOW_MS, since + SLOW_MS - Date.now()); // the clock may have been set back
    if (!meta?.slow || !query.isActive() || isBlank(state.data) || delayMs <= 0) return false;
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
    if (isListOfRuns(query)) return false;
    const affecting = events.filter((event) => isQueryAffected(query, event));
    return affecting.length > 0 && !(affecting.every(isRoutine) && postponed.postpone(query));
  };
  await Promise.all([refetch(client, { predicate }), updateLists(client, events)]);
}

/** Whether an event only names parts that have changed, as most do while a run trains: no state, not the whole. */
const isRoutine = ({ changed }: LiveEvent): boolean => changed.length > 0 && !changed.includes('state');

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

  /** Drops the events of a thing: an urgent one of its whole, which is applied now, makes them superfluous. */
  drop({ kind, id }: LiveEvent): void {
    this.#events = this.#events.filter((event) => event.kind !== kind || event.id !== id);
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
    for (const event of events) if (event.changed.length === 0) routine.drop(event);
    apply(events);
  });
  const stream = new EventStream({
    onEvent: (event) => (isRoutine(event) ? routine : urgent).add(event),
    onResync: (quietMs) => {
      // If nothing has changed since the page was requested, answers that came before the stream are current too.
      const isQuiet = quietMs > pageAgeMs();
      void client.invalidateQueries({
        predicate: (query) =>
          query.queryKey[0] !== UNWATCHED &&
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
    connection = UNCONNECTED;
  };
}
