import { queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, take } from '@/api/client';
import { keys } from '@/api/keys';
import type { LogLine } from '@/api/runParts';

const TAIL = 500;
/** A page that follows a log for a week keeps this much of it. */
export const MAX_LINES = 5000;

export type Lines = { items: LogLine[]; /** Whether there are older lines than these. */ older: boolean };

const read = (
  run: string,
  find: string,
  query: { after?: number; before?: number; tail?: boolean },
  signal?: AbortSignal,
) =>
  take(
    api.GET('/api/v1/runs/{run_id}/log', {
      params: { path: { run_id: run }, query: { ...query, limit: TAIL, ...(find ? { search: find } : {}) } },
      ...(signal ? { signal } : {}),
    }),
  );

/** The lines one had and those that came after, of which no more than fit are kept. */
export function follow(had: Lines, news: readonly LogLine[]): Lines {
  if (news.length === 0) return had;
  const all = [...had.items, ...news];
  return { items: all.slice(-MAX_LINES), older: had.older || all.length > MAX_LINES };
}

/** A run's log from its end; fetched again, only new lines come over the wire. */
export const logQuery = (client: QueryClient, run: string, find: string) => {
  const queryKey = keys.ofRun(run, 'log', find);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Lines> => {
      const had = client.getQueryData<Lines>(queryKey);
      const last = had?.items.at(-1);
      if (!had || !last) {
        const { items } = await read(run, find, { tail: true }, signal);
        return { items, older: items.length === TAIL };
      }
      const { items } = await read(run, find, { after: last.id }, signal);
      return follow(had, items);
    },
    structuralSharing: false,
  });
};

/** Puts the lines before the first one shown in front of it. */
export async function loadOlder(client: QueryClient, run: string, find: string): Promise<void> {
  const { queryKey } = logQuery(client, run, find);
  const first = client.getQueryData<Lines>(queryKey)?.items[0];
  if (!first) return;
  const { items } = await read(run, find, { before: first.id });
  client.setQueryData<Lines>(
    queryKey,
    (had) => had && { items: [...items, ...had.items], older: items.length === TAIL },
  );
}
