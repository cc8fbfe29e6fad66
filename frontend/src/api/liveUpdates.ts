import { onlineManager, type Query, type QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { api, onRequest, renewTicket } from './client';
import { EventStream, type Connection, type LiveEvent } from './eventStream';
import { keys } from './keys';
import { ApiProblem } from './problem';
import { updateRunInLists, runQuery, type RunList } from './runs';
import { hasMember, type SweepDetail } from './sweeps';

/** First elements of the keys of queries that events invalidate. */
const LIVE: ReadonlySet<string> = new Set([
  'runs',
  'run',
  'series',
  'hosts',
  'sweeps',
  'sweep',
  'papers',
  'study',
]);

/** Routine events, such as new points, are applied at most this often, however many arrive. */
const FLUSH_MS = 2000;
/** Changes of state and of what a user can edit are applied within this time. */
const URGENT_MS = 250;
/** How often the ticket for addresses is checked. */
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
/** Filters and sorting may depend on any field of a run, so lists are refetched at this interval. */
const REFETCH_LISTS_MS = 15_000;
/** A list scrolled beyond this many pages is not refetched while it is being read. */
const MAX_PAGES = 5;

const states = new Map<string, string>();
let listsRefetchedAt = 0;

/** Whether the service has refused a query, such as a filter with a mistyped field: it would only do so again. */
export const isRefused = ({ state: { error } }: Pick<Query, 'state'>): boolean =>
  error instanceof ApiProblem && error.status === 422;

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
  if (stateChanged || changed.size > MAX_SINGLE_RUNS || Date.now() - listsRefetchedAt > REFETCH_LISTS_MS) {
    listsRefetchedAt = Date.now();
    await client.invalidateQueries({
      queryKey: keys.allRuns(),
      predicate: (query) =>
        !isRefused(query) && ((query.state.data as RunList | undefined)?.pages.length ?? 0) <= MAX_PAGES,
    });
    return;
  }
  for (const id of changed.keys())
    updateRunInLists(client, await client.query({ ...runQuery(id), staleTime: 0 }));
}

/** What has to change for a resource of a run to be refetched; one that is not listed may depend on anything. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  episodes: ['episodes', 'job video'],
  episode: ['job video'],
  branches: ['job branch'],
  saliency: ['job saliency'],
  video: ['job video'],
  evaluations: ['evaluations', 'job evaluation'],
  marks: ['evaluations', 'step_notes', 'job evaluation'],
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

/** Whether a query, with the data that it has, shows something that an event has changed. */
export function isAffected(queryKey: readonly unknown[], event: LiveEvent, data?: unknown): boolean {
  const [kind, ids, name] = queryKey;
  if (kind === 'hosts') return event.host !== undefined;
  if (kind === 'sweeps') return event.sweep !== undefined;
  if (kind === 'papers') return event.study !== undefined;
  if (kind === 'study') return ids === event.study;
  // The one job that belongs to no run verifies a start set.
  if (kind === 'start-sets') return event.job !== undefined && event.run === undefined;
  if (kind === 'sweep' && event.sweep !== undefined) return ids === event.sweep;
  if (event.run === undefined) return false;
  if (kind === 'thumbnail')
    return ENDED.has(event.state ?? '') && event.job !== undefined && event.job === jobOf(data);
  // A job belongs to a run, but does not change the run itself.
  const changed = event.job === undefined ? event.changed : [`job ${event.kind}`];
  if (kind === 'sweep')
    return changed === undefined && data !== undefined && hasMember(data as SweepDetail, event.run);
  if (kind === 'run') {
    if (ids !== event.run) return false;
    if (typeof name !== 'string') return event.job === undefined;
    const parts = PARTS[name];
    return !changed || !parts || parts.some((part) => changed.includes(part));
  }
  if (kind !== 'series' || !Array.isArray(ids) || !ids.includes(event.run)) return false;
  const metrics: readonly unknown[] = Array.isArray(name) ? name : [];
  return !changed || metrics.some((metric) => changed.includes(sectionOf(metric)));
}

/** Invalidates the queries that the events affect; those on screen are then refetched. */
async function applyEvents(client: QueryClient, events: readonly LiveEvent[]): Promise<void> {
  const predicate = ({ queryKey, state }: Query): boolean =>
    events.some((event) => isAffected(queryKey, event, state.data));
  await Promise.all([client.invalidateQueries({ predicate }), updateLists(client, events)]);
}

/** Whether an event only reports the progress of training, or a host's heartbeat. */
const isRoutine = ({ changed, host }: LiveEvent): boolean => changed !== undefined || host !== undefined;

/** Keeps the query cache up to date from the event stream; returns a function that stops it. */
export function startLiveUpdates(client: QueryClient): () => void {
  let pending: LiveEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let dueAt = Infinity;
  let flushedAt = 0;

  const flush = (): void => {
    timer = undefined;
    dueAt = Infinity;
    flushedAt = Date.now();
    const events = pending;
    pending = [];
    // A query that fails shows its error where it is used.
    void applyEvents(client, events).catch(() => undefined);
  };
  const stream = new EventStream({
    onEvent: (event) => {
      pending.push(event);
      const due = Math.max(Date.now(), flushedAt + (isRoutine(event) ? FLUSH_MS : URGENT_MS));
      if (due >= dueAt) return;
      clearTimeout(timer);
      dueAt = due;
      timer = setTimeout(flush, due - Date.now());
    },
    onResync: () =>
      void client.invalidateQueries({
        predicate: (query) => LIVE.has(String(query.queryKey[0])) && !isRefused(query),
      }),
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
    clearTimeout(timer);
    clearInterval(renewal);
    stream.stop();
  };
}
