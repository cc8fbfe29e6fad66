import { afterEach, expect, it, vi } from 'vitest';
import { createQueryClient, newKey } from './client';

afterEach(() => {
  vi.unstubAllGlobals();
  dispatchEvent(new Event('online'));
});

it('a mutation fails while the page is offline, and is not sent when it is online again', async () => {
  const client = createQueryClient();
  client.mount();
  dispatchEvent(new Event('offline'));
  const mutationFn = vi.fn().mockRejectedValue(new TypeError('Failed to fetch'));
  const mutation = client.getMutationCache().build(client, { mutationFn });
  mutation.execute(undefined).catch(() => undefined);
  await vi.waitFor(() => expect(mutation.state.status).toBe('error'));
  dispatchEvent(new Event('online'));
  await client.resumePausedMutations();
  expect(mutationFn).toHaveBeenCalledTimes(1);
  client.unmount();
});

it('a key of a request is made over plain HTTP, too, which has no randomUUID', () => {
  const getRandomValues = crypto.getRandomValues.bind(crypto);
  vi.stubGlobal('crypto', { getRandomValues });
  expect(newKey()).toMatch(/^\d+(-\d+){3}$/);
  expect(newKey()).not.toBe(newKey());
});
