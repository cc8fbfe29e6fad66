import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { videosQuery, type Video } from '@/api/runResources';
import { SentVideosPanel } from './SentVideosPanel';

afterEach(cleanup);

function show(items: Video[], onShow = vi.fn()) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(videosQuery('R').queryKey, {
    pages: [{ items, next_cursor: null }],
    pageParams: [null],
  });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>
        <SentVideosPanel run="R" step="iteration" onShow={onShow} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  return onShow;
}

it('plays the latest video that a worker has encoded, and leads to all', () => {
  const onShow = show([
    { id: 'V3', run_id: 'R', state: 'running', agent_steps: 30 } as Video,
    { id: 'V2', run_id: 'R', state: 'done', agent_steps: 20 } as Video,
    { id: 'V1', run_id: 'R', state: 'done', agent_steps: 10 } as Video,
  ]);
  const video = screen.getByLabelText('Latest video, at iteration 20');
  expect(video.getAttribute('src')).toBe('/api/v1/videos/V2/file');
  fireEvent.click(screen.getByRole('button', { name: 'All videos' }));
  expect(onShow).toHaveBeenCalledOnce();
});

it('says that no video can be shown yet', () => {
  show([{ id: 'V', run_id: 'R', state: 'queued' } as Video]);
  expect(screen.getByText(/none can be shown yet/)).toBeTruthy();
});

it('is absent when the script has sent no video', () => {
  show([]);
  expect(screen.queryByRole('region')).toBeNull();
});
