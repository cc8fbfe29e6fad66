import { queryOptions } from '@tanstack/react-query';
import { keys } from '@/api/keys';
import { toProblem } from '@/api/problem';
import { sessionHeaders } from '@/api/pageSecret';
import { served } from '@/lib/base';

/** When to ask again: for a job, in case the event of its end is lost; after a refusal for too many jobs. */
const [FALLBACK_MS, REFUSED_MS] = [15_000, 2000];

/** The address of the image; without it the job that renders it, if that is known. */
type Thumbnail = { url?: string; job?: string };

const dataUrl = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error('The thumbnail could not be read.'));
    reader.readAsDataURL(blob);
  });

async function requestThumbnail(
  of: 'episodes' | 'videos',
  id: string,
  again: boolean,
  signal: AbortSignal,
): Promise<Thumbnail> {
  const url = served(`/api/v1/${of}/${id}/thumbnail${again ? '?again=true' : ''}`);
  const response = await fetch(url, { headers: sessionHeaders(), signal });
  if (response.status === 200) return { url: await dataUrl(await response.blob()) };
  if (response.status === 202) return { job: ((await response.json()) as { job: string }).job };
  if (response.status === 429) {
    await response.body?.cancel();
    return {};
  }
  throw toProblem(response.status, await response.json());
}

/** The thumbnail of an episode, or of a video that a script has sent, asked for again when its job has ended; `retries`
 * counts requests to render it again. */
export const thumbnailQuery = (of: 'episodes' | 'videos', id: string, retries: number) =>
  queryOptions({
    queryKey: keys.thumbnail(id, retries),
    meta: {
      dependsOn: (data) => {
        const { job } = (data ?? {}) as Thumbnail;
        return job === undefined ? [] : [['job', job, 'result']];
      },
    },
    queryFn: ({ signal }) => requestThumbnail(of, id, retries > 0, signal),
    refetchInterval: ({ state: { status, data } }) =>
      status === 'error' || data?.url ? false : data && !data.job ? REFUSED_MS : FALLBACK_MS,
    staleTime: Infinity,
    gcTime: 5 * 60_000,
    structuralSharing: false,
    retry: false,
  });
