import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, expect, it, vi } from 'vitest';

import { saliencyQuery } from '@/api/saliency';
import { usualShapeOf, videoQueryAt } from './video';

const service = vi.hoisted(() => {
  const state = { again: [] as boolean[] };
  // Before the API client is created, which keeps the function. A job fails at the second request.
  vi.stubGlobal('fetch', async (request: Request | string) => {
    const address = typeof request === 'string' ? request : request.url;
    state.again.push(address.includes('again=true'));
    const failed = state.again.length > 1;
    const body = failed
      ? { type: 'conflict', title: 'Conflict', detail: 'the job failed' }
      : { state: 'queued' };
    return Promise.resolve(Response.json(body, { status: failed ? 409 : 202 }));
  });
  return state;
});

const client = new QueryClient();

afterEach(() => {
  client.clear();
  service.again = [];
  vi.useRealTimers();
});

const queries = {
  saliency: () => new QueryObserver(client, saliencyQuery('R', 'E', 3, 1)),
  video: () => new QueryObserver(client, videoQueryAt(['video'], '/video', 1)),
};

it.each(Object.keys(queries) as (keyof typeof queries)[])(
  'a retry of %s asks once to do the job again, and stops at the next failure',
  async (name) => {
    vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 100 });
    const query = queries[name]();
    const stop = query.subscribe(() => undefined);
    await vi.waitUntil(() => query.getCurrentResult().isError, { timeout: 20_000 });
    await vi.advanceTimersByTimeAsync(5000);
    expect(service.again).toEqual([true, false]);
    stop();
  },
);

it.each([
  ['ALE/Pong-v5', 160 / 210],
  ['CartPole-v1', 3 / 2],
  ['Catch-v0', 1],
  ['Ant-v5', 1],
  ['Racing-Fast-v0', 1],
  ['Labyrinth-Small-v0', 7 / 3],
  ['Memory-v0', 2],
  ['Custom/Paced-v0', 3 / 2],
  [undefined, 3 / 2],
])('the shape of a video of %s is known before it is loaded', (environment, shape) => {
  expect(usualShapeOf(environment)).toBeCloseTo(shape);
});
