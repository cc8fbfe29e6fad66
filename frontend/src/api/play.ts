import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { served } from '@/lib/base';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import type { Trace } from './runResources';

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

/** The human references of this installation, for environments without a published human score. */
export const humanReferencesQuery = queryOptions({
  queryKey: keys.humanReferences(),
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/api/v1/recordings/human-references', { signal }))).items,
});

/** The games that go on from an episode of a run, latest first. */
export const gamesFromQuery = (episode: string) =>
  queryOptions({
    queryKey: [...keys.recordings(), 'from', episode] as const,
    queryFn: async ({ signal }) => {
      const query = { episode, limit: 100 };
      return (await unwrap(api.GET('/api/v1/recordings', { params: { query }, signal }))).items;
    },
    staleTime: 0,
  });

export const recordingQuery = (id: string) =>
  queryOptions({
    queryKey: keys.recording(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/v1/recordings/{recording_id}', { params: { path: { recording_id: id } }, signal }),
      ),
  });

/** The decisions of a recorded game, like those of an agent's episode but without values and policies. */
export async function readRecordingTrace(
  id: string,
  signal: AbortSignal,
): Promise<Trace & Pick<components['schemas']['RecordingTrace'], 'actors' | 'turns'>> {
  const trace = await unwrap(
    api.GET('/api/v1/recordings/{recording_id}/trace', { params: { path: { recording_id: id } }, signal }),
  );
  return {
    ...trace,
    values: trace.actions.map(() => null),
    policies: [],
    action_values: false,
    truncated: false,
  };
}

export const openPlaySession = (body: Partial<PlayRequest>) =>
  unwrap(api.POST('/api/v1/play', { body: { every_frame: false, scripted: false, ...body } }));

export const endPlaySession = (id: string) =>
  unwrap(api.DELETE('/api/v1/play/{session_id}', { params: { path: { session_id: id } } }));

export const deleteRecording = (id: string) =>
  unwrap(api.DELETE('/api/v1/recordings/{recording_id}', { params: { path: { recording_id: id } } }));

/** Whether a game can be replayed: it has ended, and something was played. */
export const isReplayable = ({ ended_at, length_steps }: Recording): boolean =>
  ended_at !== null && length_steps > 0;

export const recordingVideoUrl = (id: string): string => served(`/api/v1/recordings/${id}/video`);

export const recordingFileUrl = (id: string): string => served(`/api/v1/recordings/${id}/file`);
