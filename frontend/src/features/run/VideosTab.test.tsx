import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '@/api/client';
import { videosQuery, type Video } from '@/api/runResources';
import { VideosTab } from './VideosTab';

const DONE: Video = {
  id: 'V',
  run_id: 'R',
  received_at: '2026-01-31T10:00:00Z',
  agent_steps: 100_000,
  wall_time_s: 812.5,
  state: 'done',
  error: null,
  n_frames: 60,
  duration_s: 2,
  size_bytes: 2048,
};
const FAILED: Video = {
  ...DONE,
  id: 'W',
  state: 'failed',
  error: 'it has no video stream',
  n_frames: null,
  duration_s: null,
};

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function clientWith(page: { items: Video[]; next_cursor: string | null }): QueryClient {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(videosQuery('R').queryKey, { pages: [page], pageParams: [null] });
  return client;
}

const clientOf = (...items: Video[]): QueryClient => clientWith({ items, next_cursor: null });

const shown = (client: QueryClient, children: ReactNode) => (
  <QueryClientProvider client={client}>
    <MantineProvider>{children}</MantineProvider>
  </QueryClientProvider>
);

const tab = (selected?: string, onSelect: (video: string) => void = vi.fn()) => (
  <VideosTab run="R" step="agent step" selected={selected} onSelect={onSelect} />
);

it('plays the selected video, and shows why another one cannot be shown', () => {
  const client = clientOf(DONE, FAILED);
  const onSelect = vi.fn();
  const { rerender } = render(shown(client, tab(undefined, onSelect)));
  expect(screen.getByText('cannot be shown: it has no video stream')).toBeTruthy();
  expect(screen.queryByLabelText('Video at agent step 100,000')).toBeNull();
  fireEvent.click(screen.getByRole('button', { name: 'Watch the video at agent step 100,000' }));
  expect(onSelect).toHaveBeenCalledWith('V');
  rerender(shown(client, tab('V', onSelect)));
  const video = screen.getByLabelText('Video at agent step 100,000');
  expect(video.getAttribute('src')).toBe('/api/v1/videos/V/file');
});

it('fetches the list up to the selected video, and no further', async () => {
  const page = { items: [DONE], next_cursor: 'third' };
  const fetched = vi
    .spyOn(api, 'GET')
    .mockResolvedValue({ data: page, response: new Response() } as Awaited<ReturnType<typeof api.GET>>);
  render(shown(clientWith({ items: [FAILED], next_cursor: 'second' }), tab('V')));
  expect(await screen.findByLabelText('Video at agent step 100,000')).toBeTruthy();
  expect(fetched).toHaveBeenCalledTimes(1);
});

it('shows that the selected video is not there', () => {
  render(shown(clientOf(DONE), tab('X')));
  expect(screen.getByText(/selected video is not there/)).toBeTruthy();
});

it('shows that the script has sent no video yet', () => {
  render(shown(clientOf(), tab()));
  expect(screen.getByText(/script has sent none/)).toBeTruthy();
});
