import { queryOptions } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Algorithm = components['schemas']['AlgorithmOut'];
export type Environment = components['schemas']['EnvironmentOut'];
export type Preset = components['schemas']['PresetOut'];

// The catalogue is part of the installed version: it cannot change under an open page.
const FOR_EVER = { staleTime: Infinity, gcTime: Infinity } as const;

export const algorithmsQuery = queryOptions({
  queryKey: keys.algorithms(),
  queryFn: async ({ signal }) => (await take(api.GET('/api/v1/algorithms', { signal }))).items,
  ...FOR_EVER,
});

export const environmentsQuery = queryOptions({
  queryKey: keys.environments(),
  queryFn: async ({ signal }) => (await take(api.GET('/api/v1/environments', { signal }))).items,
  ...FOR_EVER,
});
