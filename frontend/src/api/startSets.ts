import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { served } from '@/lib/base';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { ApiProblem } from './problem';

export type StartSet = components['schemas']['StartSetOut'];
export type StartSetRequest = components['schemas']['StartSetRequest'];
export type PlayedGames = components['schemas']['StartSetSource'];
type StartSetFile = components['schemas']['StartSetFile'];

/** Maximum number of games of a set. */
export const MAX_GAMES = 200;
/** An event reports the end of a verification; it may be missed while the browser is offline. */
const REFETCH_MS = 10_000;

/** Every version of every start set, latest first. */
export const startSetsQuery = queryOptions({
  queryKey: keys.startSets(),
  meta: { dependsOn: () => [['job', null, 'start_set']] },
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/api/v1/start-sets', { params: { query: { limit: 500 } }, signal }))).items,
  refetchInterval: ({ state: { data } }) =>
    data?.some(({ state }) => state === 'verifying') ? REFETCH_MS : false,
});

/** The latest runs of Atari games: their recorded episodes can become a start set. */
export const sourceRunsQuery = queryOptions({
  queryKey: [...keys.allRuns(), 'start-set-sources'] as const,
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/api/v1/runs', { params: { query: { limit: 200 } }, signal }))).items.filter(
      ({ environment, origin }) => environment.startsWith('ALE/') && origin !== 'external',
    ),
});

/** The Atari games that people or scripts have played here, with the number of their recordings. */
export const playedGamesQuery = queryOptions({
  queryKey: [...keys.recordings(), 'start-set-sources'] as const,
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/start-sets/sources', { signal }))).items,
});

/** The address of a verified set as a file. */
export const exportUrl = (id: string): string => served(`/api/v1/start-sets/${id}/export`);

/** Runs a change of the start sets, then refetches them. */
export function useStartSetMutation<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: keys.startSets() }),
  });
}

export const createStartSet = (body: StartSetRequest): Promise<StartSet> =>
  unwrap(api.POST('/api/v1/start-sets', { body }));

/** Imports an exported file; the service checks what it contains. */
export async function importStartSet(file: File): Promise<StartSet> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch {
    const detail = `${file.name} is not a start set: choose a file that Export has saved.`;
    throw new ApiProblem(422, 'Not a start set', detail);
  }
  return unwrap(api.POST('/api/v1/start-sets/import', { body: { file: content as StartSetFile } }));
}

export const deleteStartSet = (id: string): Promise<unknown> =>
  unwrap(api.DELETE('/api/v1/start-sets/{set_id}', { params: { path: { set_id: id } } }));
