import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Algorithm = components['schemas']['AlgorithmOut'];
export type Environment = components['schemas']['EnvironmentOut'];
export type Preset = components['schemas']['PresetOut'];

// The catalogue belongs to the installed version: it cannot change while a page is open.
const NEVER_STALE = { staleTime: Infinity, gcTime: Infinity } as const;

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
    ...NEVER_STALE,
    retry: false,
  });

export const environmentsQuery = queryOptions({
  queryKey: keys.environments(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/environments', { signal }))).items,
  ...NEVER_STALE,
});
