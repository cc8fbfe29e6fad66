import { queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { keys } from '@/api/keys';
import type { LogLine } from '@/api/runResources';

const PAGE_SIZE = 500;
/** The number of lines kept while following a log. */
export const MAX_LINES = 5000;

export type Lines = { items: LogLine[]; /** Whether the run has older lines. */ older: boolean };

const fetchLines = (
  run: string,
  find: string,
  query: { after?: number; before?: number; tail?: boolean },
  signal?: AbortSignal,
) =>
  unwrap(
    api.GET('/api/v1/runs/{run_id}/log', {
      params: {
        path: { run_id: run },
        query: { ...query, limit: PAGE_SIZE, ...(find ? { search: find } : {}) },
      },
      ...(signal ? { signal } : {}),
    }),
  );

/** Appends new lines and drops the oldest beyond `MAX_LINES`. */
export function appendLines(previous: Lines, added: readonly LogLine[]): Lines {
  if (added.length === 0) return previous;
  const all = [...previous.items, ...added];
  return { items: all.slice(-MAX_LINES), older: previous.older || all.length > MAX_LINES };
}

/** The end of a run's log; a refetch transfers only new lines. */
export const logQuery = (client: QueryClient, run: string, find: string) => {
  const queryKey = keys.runResource(run, 'log', find);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Lines> => {
      const previous = client.getQueryData<Lines>(queryKey);
      let last = previous?.items.at(-1);
      if (!previous || !last) {
        const { items } = await fetchLines(run, find, { tail: true }, signal);
        return { items, older: items.length === PAGE_SIZE };
      }
      const added: LogLine[] = [];
      for (let page = 0; last && page < MAX_LINES / PAGE_SIZE; page += 1) {
        const { items }: { items: LogLine[] } = await fetchLines(run, find, { after: last.id }, signal);
        added.push(...items);
        last = items.length === PAGE_SIZE ? items.at(-1) : undefined;
      }
      // Read again: older lines may have been loaded in the meantime.
      if (!last) return appendLines(client.getQueryData<Lines>(queryKey) ?? previous, added);
      // Nothing that was shown would be left: after a long gap the log begins anew.
      const { items } = await fetchLines(run, find, { tail: true }, signal);
      return { items, older: true };
    },
    structuralSharing: false,
  });
};

/** Fetches the lines before the first one shown. */
export async function loadOlder(client: QueryClient, run: string, find: string): Promise<void> {
  const { queryKey } = logQuery(client, run, find);
  const first = client.getQueryData<Lines>(queryKey)?.items[0];
  if (!first) return;
  const { items } = await fetchLines(run, find, { before: first.id });
  client.setQueryData<Lines>(
    queryKey,
    (previous) => previous && { items: [...items, ...previous.items], older: items.length === PAGE_SIZE },
  );
}
