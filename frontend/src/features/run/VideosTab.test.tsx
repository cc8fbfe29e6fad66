import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
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

afterEach(cleanup);

function clientOf(...items: Video[]): QueryClient {
  const page = { items, next_cursor: null };
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(videosQuery('R').queryKey, { pages: [page], pageParams: [null] });
  return client;
}

const shown = (client: QueryClient, children: ReactNode) => (
  <QueryClientProvider client={client}>
    <MantineProvider>{children}</MantineProvider>
  </QueryClientProvider>
);

const tab = (selected?: string, onSelect: (video: string) => void = vi.fn()) => (
  <VideosTab run="R" step="agent step" selected={selected} onSelect={onSelect} />
);

it('selects a video to watch, and shows why another one cannot be shown', () => {
  const client = clientOf(DONE, FAILED);
  const onSelect = vi.fn();
  const { rerender } = render(shown(client, tab(undefined, onSelect)));
  expect(screen.getByText('cannot be shown: it has no video stream')).toBeTruthy();
  const watch = screen.getByRole('button', { name: 'Watch the video at agent step 100,000' });
  fireEvent.click(watch);
  expect(onSelect).toHaveBeenCalledWith('V');
  rerender(shown(client, tab('V', onSelect)));
  expect(watch.textContent).toBe('Selected');
});

it('shows that the script has sent no video yet', () => {
  render(shown(clientOf(), tab()));
  expect(screen.getByText(/script has sent none/)).toBeTruthy();
});
