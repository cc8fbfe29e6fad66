import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { api, take } from './client';
import { keys } from './keys';
import { patchLists, runQuery, type RunList } from './runs';
import { LiveConnection, type Connection, type LiveEvent } from './live';

/** First parts of the keys of what changes by itself. */
const LIVE: ReadonlySet<string> = new Set(['runs', 'run', 'series', 'hosts']);

/** Data are fetched at most this often, however many events arrive; charts are redrawn half as often. */
const FLUSH_MS = 500;

let connection: Connection = { status: 'connecting', heardAt: null };
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether what the page shows is kept up to date. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection);
}

/** Of how many runs at once new rows are fetched one by one; of more, the lists are fetched anew. */
const FEW = 3;
/** Filters and orders may depend on any number of a run, so lists are fetched anew now and then. */
const RENEW_LISTS_MS = 15_000;
/** A list someone has scrolled further than this is not fetched anew under their eyes. */
const MAX_PAGES = 5;

const states = new Map<string, string>();
let listsRenewedAt = 0;

/** Brings lists up to date with as little traffic as will do. */
async function renewLists(client: QueryClient, events: readonly LiveEvent[]): Promise<void> {
  const changed = new Map(
    events
      .filter(({ job }) => job === undefined)
      .flatMap(({ run, state }) => (run && state ? [[run, state]] : [])),
  );
  if (changed.size === 0) return;
  const moved = [...changed].some(([run, state]) => states.get(run) !== state);
  for (const [run, state] of changed) states.set(run, state);
  if (moved || changed.size > FEW || Date.now() - listsRenewedAt > RENEW_LISTS_MS) {
    listsRenewedAt = Date.now();
    await client.invalidateQueries({
      queryKey: keys.allRuns(),
      predicate: ({ state: { data } }) => ((data as RunList | undefined)?.pages.length ?? 0) <= MAX_PAGES,
    });
    return;
  }
  for (const id of changed.keys()) patchLists(client, await client.query({ ...runQuery(id), staleTime: 0 }));
}

/** Marks what the events concern as out of date; what is on the screen is then fetched anew. */
export async function applyEvents(client: QueryClient, events: readonly LiveEvent[]): Promise<void> {
  const runs = new Set(events.flatMap((event) => event.run ?? []));
  const concerns = ({ queryKey: [what, of] }: { queryKey: readonly unknown[] }): boolean =>
    (what === 'run' && runs.has(String(of))) ||
    (what === 'series' && Array.isArray(of) && of.some((run) => runs.has(String(run)))) ||
    (what === 'hosts' && events.some((event) => event.host !== undefined));
  await Promise.all([client.invalidateQueries({ predicate: concerns }), renewLists(client, events)]);
}

/** Keeps the cache up to date from the event stream until the returned function is called. */
export function startLive(client: QueryClient): () => void {
  let waiting: LiveEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let flushedAt = 0;

  const flush = (): void => {
    timer = undefined;
    flushedAt = Date.now();
    const events = waiting;
    waiting = [];
    // What could not be fetched shows its own error where it stands.
    void applyEvents(client, events).catch(() => undefined);
  };
  const live = new LiveConnection({
    onEvent: (event) => {
      waiting.push(event);
      timer ??= setTimeout(flush, Math.max(0, flushedAt + FLUSH_MS - Date.now()));
    },
    onResync: () =>
      void client.invalidateQueries({ predicate: ({ queryKey }) => LIVE.has(String(queryKey[0])) }),
    onConnection: (next) => {
      connection = next;
      for (const listener of listeners) listener();
    },
    probe: () => take(api.GET('/api/v1/auth/me')),
  });
  live.start();
  return () => {
    clearTimeout(timer);
    live.stop();
  };
}
