import { queryOptions } from '@tanstack/react-query';
import { keys } from '@/api/keys';
import { toProblem } from '@/api/problem';

export type VideoState = 'ready' | 'queued' | 'running';

const ASK_AGAIN_MS = 1000;

export const videoUrl = (episode: string): string => `/api/v1/episodes/${episode}/video`;

export const observationsUrl = (episode: string): string => `/api/v1/episodes/${episode}/observations`;

async function askForVideo(episode: string, again: boolean, signal: AbortSignal): Promise<VideoState> {
  // One byte tells whether it is drawn; asking also has it drawn.
  const url = videoUrl(episode) + (again ? '?again=true' : '');
  const response = await fetch(url, { headers: { Range: 'bytes=0-0' }, signal });
  if (response.status === 206 || response.status === 200) {
    await response.body?.cancel();
    return 'ready';
  }
  const body = (await response.json()) as { state?: VideoState };
  if (!response.ok) throw toProblem(response.status, body);
  return body.state ?? 'queued';
}

/** Whether an episode's video is drawn; asks until it is. `tries` counts how often drawing it failed. */
export const videoQuery = (run: string, episode: string, tries: number) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'video', episode, tries),
    queryFn: ({ signal }) => askForVideo(episode, tries > 0, signal),
    refetchInterval: ({ state }) => (state.data && state.data !== 'ready' ? ASK_AGAIN_MS : false),
    retry: false,
  });
