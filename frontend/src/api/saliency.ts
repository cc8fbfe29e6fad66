import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Saliency = components['schemas']['SaliencyOut'];

const POLL_MS = 1000;

/** The saliency map of a decision, polled until a worker has computed it; `retries` counts requests to do so again. */
export const saliencyQuery = (run: string, episode: string, decision: number, retries: number) =>
  queryOptions({
    queryKey: keys.runResource(run, 'saliency', episode, decision, retries),
    queryFn: async ({ signal, client, queryKey }): Promise<Saliency | 'pending'> => {
      const again = retries > 0 && client.getQueryData(queryKey) === undefined; // once, not with each poll
      const params = { path: { episode_id: episode }, query: { decision, again } };
      const answer = await unwrap(api.GET('/api/v1/episodes/{episode_id}/saliency', { params, signal }));
      return 'map' in answer ? answer : 'pending';
    },
    refetchInterval: ({ state: { data, error } }) => (data === 'pending' && error === null ? POLL_MS : false),
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
