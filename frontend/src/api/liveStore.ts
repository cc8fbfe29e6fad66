import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { api, take } from './client';
import { keys } from './keys';
import { LiveConnection, type Connection, type LiveEvent } from './live';

/** First parts of the keys of what changes by itself. */
const LIVE: ReadonlySet<string> = new Set(['runs', 'run', 'hosts']);

/** Pages redraw at most this often, however many events arrive. */
const FLUSH_MS = 1000;

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

/** Marks what the events concern as out of date; what is on the screen is then fetched anew. */
export function applyEvents(client: QueryClient, events: readonly LiveEvent[]): void {
  const runs = new Set(events.flatMap((event) => event.run ?? []));
  for (const run of runs) void client.invalidateQueries({ queryKey: keys.run(run) });
  if (runs.size > 0) void client.invalidateQueries({ queryKey: keys.allRuns() });
  if (events.some((event) => event.host !== undefined)) {
    void client.invalidateQueries({ queryKey: keys.hosts() });
  }
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
    applyEvents(client, events);
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
