import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Host = components['schemas']['HostOut'];

export const hostsQuery = queryOptions({
  queryKey: keys.hosts(),
  queryFn: ({ signal }) => take(api.GET('/api/v1/hosts', { signal })),
});

const of = (id: string) => ({ params: { path: { host_id: id } } });

export const setDraining = (id: string, draining: boolean) =>
  draining
    ? take(api.POST('/api/v1/hosts/{host_id}/drain', of(id)))
    : take(api.POST('/api/v1/hosts/{host_id}/undrain', of(id)));

/** Changes a host and then has the hosts fetched anew. */
export function useHostChange<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: keys.hosts() }),
  });
}
