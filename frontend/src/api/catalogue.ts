import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Algorithm = components['schemas']['AlgorithmOut'];
export type Environment = components['schemas']['EnvironmentOut'];
export type Command = components['schemas']['CommandOut'];
export type Preset = components['schemas']['PresetOut'];

// Algorithms belong to the installed version: they cannot change while a page is open.
const NEVER_STALE = { staleTime: Infinity, gcTime: Infinity } as const;
// Hosts add and remove custom environments and commands.
const CHANGED_BY_HOSTS = { staleTime: 15_000, gcTime: Infinity } as const;

export const algorithmsQuery = queryOptions({
  queryKey: keys.algorithms(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/algorithms', { signal }))).items,
  ...NEVER_STALE,
});

export const environmentQuery = (id: string) =>
  queryOptions({
    queryKey: keys.environment(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/v1/environments/{environment_id}', {
          params: { path: { environment_id: id } },
          signal,
        }),
      ),
    ...CHANGED_BY_HOSTS,
    retry: false,
  });

export const commandsQuery = queryOptions({
  queryKey: keys.commands(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/commands', { signal }))).items,
  ...CHANGED_BY_HOSTS,
});

export const environmentsQuery = queryOptions({
  queryKey: keys.environments(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/environments', { signal }))).items,
  ...CHANGED_BY_HOSTS,
});
