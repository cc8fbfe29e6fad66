import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Host = components['schemas']['HostOut'];
type Readiness = components['schemas']['Readiness'];
export type HostPage = components['schemas']['HostPage'];

// No event is sent for silence: only polling finds a host that has stopped responding.
const POLL_MS = 15_000;

export const hostsQuery = queryOptions({
  queryKey: keys.hosts(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/hosts', { signal })),
  refetchInterval: POLL_MS,
});

/** The hosts, refetched at the interval alone, not after each heartbeat; taken from `hostsQuery` if that is recent. */
export const hostSilenceQuery = queryOptions({
  queryKey: keys.hostSilence(),
  queryFn: ({ client }) => client.query({ ...hostsQuery, staleTime: POLL_MS / 2 }),
  refetchInterval: POLL_MS,
});

/** What the service cannot use, such as a full disk; with status 503 the answer is the same document. */
export const readinessQuery = queryOptions({
  queryKey: keys.readiness(),
  queryFn: async ({ signal }): Promise<Readiness | null> => {
    const { data, error } = await api.GET('/readyz', { signal });
    return data ?? ('disk' in error ? error : null);
  },
  refetchInterval: 15_000,
  retry: false,
});

const hostPath = (id: string) => ({ params: { path: { host_id: id } } });

export const setDraining = (id: string, draining: boolean) =>
  draining
    ? unwrap(api.POST('/api/v1/hosts/{host_id}/drain', hostPath(id)))
    : unwrap(api.POST('/api/v1/hosts/{host_id}/undrain', hostPath(id)));

export const removeHost = (id: string) => unwrap(api.DELETE('/api/v1/hosts/{host_id}', hostPath(id)));

type WaitingRun = HostPage['waiting_runs'][number];

/** The queue with a run directly after another one, or first. */
function movedAfter(queue: readonly WaitingRun[], id: string, after: string | null): WaitingRun[] {
  const run = queue.find((queued) => queued.id === id);
  const others = queue.filter((queued) => queued.id !== id);
  const at = after === null ? 0 : others.findIndex((queued) => queued.id === after) + 1;
  return run ? [...others.slice(0, at), run, ...others.slice(at)] : [...queue];
}

/** Moves a queued run, on the page immediately. */
export function useQueueMove() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, after }: { id: string; after: string | null }) =>
      unwrap(api.POST('/api/v1/runs/{run_id}/queue', { params: { path: { run_id: id } }, body: { after } })),
    onMutate: ({ id, after }) =>
      client.setQueryData(
        keys.hosts(),
        (page: HostPage | undefined) =>
          page && { ...page, waiting_runs: movedAfter(page.waiting_runs, id, after) },
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.hosts() }),
  });
}

/** Runs a change of a host, then refetches the hosts. */
export function useHostMutation<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: keys.hosts() }),
  });
}
