import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type PlaySession = components['schemas']['PlaySessionOut'];
export type Recording = components['schemas']['RecordingOut'];
type PlayRequest = components['schemas']['PlayRequest'];

/** No event is sent for play sessions. */
const POLL_MS = 1000;
const LIST_POLL_MS = 10_000;

/** A session, polled while it waits for a worker. */
export const playSessionQuery = (id: string) =>
  queryOptions({
    queryKey: keys.playSession(id),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/play/{session_id}', { params: { path: { session_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data?.state === 'queued' ? POLL_MS : false),
  });

/** The sessions that are played now. */
export const openSessionsQuery = queryOptions({
  queryKey: keys.playSessions(),
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/api/v1/play', { params: { query: { state: 'running' } }, signal }))).items,
  refetchInterval: LIST_POLL_MS,
  staleTime: 0,
});

/** Recorded games, latest first, page by page. */
export const recordingsQuery = infiniteQueryOptions({
  queryKey: keys.recordings(),
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET('/api/v1/recordings', { params: { query: { cursor: pageParam, limit: 25 } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
  refetchInterval: LIST_POLL_MS,
  staleTime: 0,
});

export const openPlaySession = (body: Partial<PlayRequest> & { environment: string }) =>
  unwrap(api.POST('/api/v1/play', { body: { every_frame: false, scripted: false, ...body } }));

export const endPlaySession = (id: string) =>
  unwrap(api.DELETE('/api/v1/play/{session_id}', { params: { path: { session_id: id } } }));

export const deleteRecording = (id: string) =>
  unwrap(api.DELETE('/api/v1/recordings/{recording_id}', { params: { path: { recording_id: id } } }));

export const recordingFileUrl = (id: string): string => `/api/v1/recordings/${id}/file`;
