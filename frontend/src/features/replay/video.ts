import { queryOptions } from '@tanstack/react-query';
import { renewTicket } from '@/api/client';
import { keys } from '@/api/keys';
import { ApiProblem, toProblem } from '@/api/problem';
import { sessionHeaders } from '@/api/pageSecret';
import { served } from '@/lib/base';
import { environmentImage } from '@/lib/environments';

export type VideoState = 'ready' | 'queued' | 'running';

const POLL_MS = 1000;

export const videoUrl = (episode: string): string => served(`/api/v1/episodes/${episode}/video`);

export const observationsUrl = (episode: string): string =>
  served(`/api/v1/episodes/${episode}/observations`);

async function requestVideo(address: string, retry: boolean, signal: AbortSignal): Promise<VideoState> {
  // A request for one byte shows whether the video exists; it also starts the rendering.
  const url = address + (retry ? '?again=true' : '');
  const headers = { ...sessionHeaders(), Range: 'bytes=0-0' };
  const response = await fetch(url, { headers, signal });
  if (response.status === 206 || response.status === 200) {
    await response.body?.cancel();
    await renewTicket();
    return 'ready';
  }
  const body = (await response.json()) as { state?: VideoState };
  if (!response.ok) throw toProblem(response.status, body);
  return body.state ?? 'queued';
}

/** Whether an error says nothing of the video: the next request may succeed. */
const isTransient = (error: unknown): boolean =>
  !(error instanceof ApiProblem) || error.status === 429 || error.status === 503;

/** Whether the state of a video could not be read: neither is one ready, nor is it polled any more. */
export const isFailed = ({ data, error }: { data: VideoState | undefined; error: unknown }): boolean =>
  Boolean(error) && data !== 'ready' && (data === undefined || !isTransient(error));

/** The state of a video, polled until it is rendered; `retries` counts requests to render it again. */
export const videoQueryAt = (key: readonly unknown[], address: string, retries: number) =>
  queryOptions({
    queryKey: [...key, retries],
    queryFn: ({ signal, client, queryKey }) => {
      const again = retries > 0 && client.getQueryData(queryKey) === undefined; // once, not with each poll
      return requestVideo(address, again, signal);
    },
    refetchInterval: ({ state: { data, error } }) =>
      data !== undefined && data !== 'ready' && (!error || isTransient(error)) ? POLL_MS : false,
    retry: false,
  });

/** The state of an episode's video. */
export const videoQuery = (run: string, episode: string, retries: number) =>
  videoQueryAt(keys.runResource(run, 'video', episode), videoUrl(episode), retries);

/** Width to height of a custom environment's videos, until one is loaded. */
const USUAL_SHAPE = 3 / 2;
/** The shape of environments with an image that `SHAPES` does not list. */
const SQUARE = 1;

const SHAPES: readonly (readonly [prefix: string, shape: number])[] = [
  ['ALE/', 160 / 210],
  ['CartPole-', 3 / 2],
  ['Labyrinth-', 7 / 3],
  ['Memory-', 2],
];

/** The probable shape of an environment's video, so that little moves when the video is loaded. */
export function usualShapeOf(environment: string | undefined): number {
  if (environment === undefined || environmentImage(environment) === undefined) return USUAL_SHAPE;
  return SHAPES.find(([prefix]) => environment.startsWith(prefix))?.[1] ?? SQUARE;
}

/** Width to height of a loaded video, limited so that the layout around it stays usable. */
export const shapeOf = ({ videoWidth, videoHeight }: HTMLVideoElement): number =>
  videoHeight > 0 ? Math.max(0.75, Math.min(2.4, videoWidth / videoHeight)) : USUAL_SHAPE;
