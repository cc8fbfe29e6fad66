import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Run } from '@/api/runs';
import { SideBySide } from './SideBySide';

const service = vi.hoisted(() => {
  const state = { videoStatus: 206 };
  // Each run has one episode for each order.
  globalThis.fetch = (input) => {
    const { pathname, searchParams } = new URL(
      input instanceof Request ? input.url : String(input),
      'http://x',
    );
    if (pathname.endsWith('/video')) return Promise.resolve(new Response('0', { status: state.videoStatus }));
    const id = `${pathname.split('/').at(-2)} ${searchParams.get('sort')}`;
    const items = [{ id, episode_return: 1, agent_steps: 100 }];
    return Promise.resolve(Response.json({ items, next_cursor: null }));
  };
  return state;
});

afterEach(() => {
  cleanup();
  service.videoStatus = 206;
});

const runs = ['A', 'B'].map((id) => ({
  ...{ id, name: id, environment: 'Catch-v0', state: 'finished', agent_steps: 100 },
  spec: { config: {} },
})) as unknown as Run[];

function show(): QueryClient {
  const client = new QueryClient();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <SideBySide runs={runs} nameOf={({ name }) => name} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return client;
}

const videoOf = (run: string) => screen.findByLabelText<HTMLVideoElement>(`Video of an episode of ${run}`);

/** Loads a run's video of some length; returns it, and what plays it. */
async function load(run: string, duration: number) {
  const video = await videoOf(run);
  const play = vi.fn(() => Promise.resolve());
  const media = { duration, currentTime: 0, ended: false, play, pause: vi.fn() };
  for (const [name, value] of Object.entries(media))
    Object.defineProperty(video, name, { value, writable: true });
  fireEvent(video, new Event('loadedmetadata'));
  return { video, play };
}

it('a video that is loaded while others play starts at their time', async () => {
  show();
  const { video: first } = await load('A', 10);
  fireEvent.click(screen.getByRole('button', { name: 'Play all' }));
  first.currentTime = 4;
  await screen.findByText('0:04 / 0:10');
  const second = await load('B', 20);
  expect(second.video.currentTime).toBe(4);
  expect(second.play).toHaveBeenCalledOnce();
  await screen.findByText('0:04 / 0:20');
});

it('a video goes on where the service does not answer when it is asked again', async () => {
  const client = show();
  const { video } = await load('A', 10);
  service.videoStatus = 503;
  await client.refetchQueries();
  expect(
    client
      .getQueryCache()
      .getAll()
      .some(({ state }) => state.status === 'error'),
  ).toBe(true);
  expect(video.isConnected).toBe(true);
});

it('another choice of episodes starts at 0, with the length of its videos', async () => {
  show();
  const { video: first } = await load('A', 10);
  await load('B', 7);
  fireEvent.click(screen.getByRole('button', { name: 'Play all' }));
  first.currentTime = 4;
  await screen.findByText('0:04 / 0:10');
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  await waitFor(() => expect(first.isConnected).toBe(false));
  expect((await load('A', 3)).video.currentTime).toBe(0);
  await load('B', 2);
  expect(await screen.findByText('0:00 / 0:03')).toBeTruthy();
});
