import { queryOptions } from '@tanstack/react-query';
import { keys } from '@/api/keys';
import { toProblem } from '@/api/problem';
import { sessionHeaders } from '@/api/session';
import { served } from '@/lib/base';

const POLL_MS = 2000;

const dataUrl = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error('The thumbnail could not be read.'));
    reader.readAsDataURL(blob);
  });

/** The address of the thumbnail; null while it is rendered. */
async function requestThumbnail(
  of: 'episodes' | 'videos',
  id: string,
  again: boolean,
  signal: AbortSignal,
): Promise<string | null> {
  const url = served(`/api/v1/${of}/${id}/thumbnail${again ? '?again=true' : ''}`);
  const response = await fetch(url, { headers: sessionHeaders(), signal });
  if (response.status === 200) return dataUrl(await response.blob());
  if (response.status === 202 || response.status === 429) {
    await response.body?.cancel();
    return null;
  }
  throw toProblem(response.status, await response.json());
}

/** The thumbnail of an episode, or of a video that a script has sent, polled until it is rendered; `retries`
 * counts requests to render it again. */
export const thumbnailQuery = (of: 'episodes' | 'videos', id: string, retries: number) =>
  queryOptions({
    queryKey: keys.thumbnail(id, retries),
    queryFn: ({ signal }) => requestThumbnail(of, id, retries > 0, signal),
    refetchInterval: ({ state }) => (state.status !== 'error' && !state.data ? POLL_MS : false),
    staleTime: Infinity,
    gcTime: 5 * 60_000,
    structuralSharing: false,
    retry: false,
  });
