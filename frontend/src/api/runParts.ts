import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Episode = components['schemas']['EpisodeOut'];
export type Trace = components['schemas']['Trace'];
export type Evaluation = components['schemas']['EvaluationOut'];
export type Checkpoint = components['schemas']['CheckpointOut'];
export type LogLine = components['schemas']['LogLineOut'];

const path = (run: string) => ({ run_id: run });

export const episodesQuery = (run: string, sort: string) =>
  infiniteQueryOptions({
    queryKey: keys.ofRun(run, 'episodes', sort),
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET('/api/v1/runs/{run_id}/episodes', {
          params: { path: path(run), query: { sort, limit: 50, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

export const episodeQuery = (run: string, id: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'episode', id),
    queryFn: ({ signal }) =>
      take(api.GET('/api/v1/episodes/{episode_id}', { params: { path: { episode_id: id } }, signal })),
  });

/** A recorded episode never changes. */
export const traceQuery = (id: string) =>
  queryOptions({
    queryKey: keys.trace(id),
    queryFn: ({ signal }) =>
      take(api.GET('/api/v1/episodes/{episode_id}/trace', { params: { path: { episode_id: id } }, signal })),
    staleTime: Infinity,
    gcTime: 60_000,
    structuralSharing: false,
  });

export const evaluationsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'evaluations'),
    queryFn: async ({ signal }) =>
      (await take(api.GET('/api/v1/runs/{run_id}/evaluations', { params: { path: path(run) }, signal })))
        .items,
  });

export const requestEvaluation = (run: string) =>
  take(api.POST('/api/v1/runs/{run_id}/evaluations', { params: { path: path(run) }, body: null }));

export const checkpointsQuery = (run: string) =>
  infiniteQueryOptions({
    queryKey: keys.ofRun(run, 'checkpoints'),
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET('/api/v1/runs/{run_id}/checkpoints', {
          params: { path: path(run), query: { cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
