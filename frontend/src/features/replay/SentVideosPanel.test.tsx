import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { videoQuery, videosQuery, type Video } from '@/api/runResources';
import { SentVideosPanel } from './SentVideosPanel';

// No video is found that a test has not given.
vi.hoisted(() => {
  globalThis.fetch = () => Promise.resolve(new Response('{}', { status: 404 }));
});

afterEach(cleanup);

function show(items: Video[], selected?: string) {
  const [onShow, onDeselect] = [vi.fn(), vi.fn()];
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(videosQuery('R').queryKey, {
    pages: [{ items, next_cursor: null }],
    pageParams: [null],
  });
  for (const video of items) client.setQueryData(videoQuery('R', video.id).queryKey, video);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>
        <SentVideosPanel
          run="R"
          step="iteration"
          selected={selected}
          onDeselect={onDeselect}
          onShow={onShow}
        />
      </MantineProvider>
    </QueryClientProvider>,
  );
  return { onShow, onDeselect };
}

const SENT = [
  { id: 'V3', run_id: 'R', state: 'running', agent_steps: 30, error: null } as Video,
  { id: 'V2', run_id: 'R', state: 'done', agent_steps: 20, error: null } as Video,
  { id: 'V1', run_id: 'R', state: 'done', agent_steps: 10, error: null } as Video,
];

it('plays the latest video that a worker has encoded, and leads to all', () => {
  const { onShow } = show(SENT);
  const video = screen.getByLabelText('Latest video, at iteration 20');
  expect(video.getAttribute('src')).toBe('/api/v1/videos/V2/file');
  fireEvent.click(screen.getByRole('button', { name: 'All videos' }));
  expect(onShow).toHaveBeenCalledOnce();
});

it('F shows the video on the whole screen', () => {
  show(SENT);
  const video = screen.getByLabelText('Latest video, at iteration 20');
  const requestFullscreen = vi.fn(() => Promise.resolve());
  Object.assign(video, { requestFullscreen });
  fireEvent.keyDown(document.body, { key: 'f' });
  expect(requestFullscreen).toHaveBeenCalledOnce();
});

it('plays the selected video, and returns to the latest', () => {
  const { onDeselect } = show(SENT, 'V1');
  const video = screen.getByLabelText('Video, at iteration 10');
  expect(video.getAttribute('src')).toBe('/api/v1/videos/V1/file');
  fireEvent.click(screen.getByRole('button', { name: 'Latest' }));
  expect(onDeselect).toHaveBeenCalledOnce();
});

it('says why the selected video cannot be shown', () => {
  const failed = { id: 'V4', run_id: 'R', state: 'failed', agent_steps: 40, error: 'no stream' } as Video;
  show([...SENT, failed], 'V4');
  expect(screen.getByText('The selected video cannot be shown: no stream.')).toBeTruthy();
});

it('says that the selected video is not there', async () => {
  show(SENT, 'X');
  expect(await screen.findByText(/selected video is not there/)).toBeTruthy();
});

it('says that the file of a video cannot be played', () => {
  show(SENT);
  fireEvent.error(screen.getByLabelText('Latest video, at iteration 20'));
  expect(screen.getByText(/file is missing or damaged/)).toBeTruthy();
});

it('says that no video can be shown yet', () => {
  show([{ id: 'V', run_id: 'R', state: 'queued' } as Video]);
  expect(screen.getByText(/none can be shown yet/)).toBeTruthy();
});

it('is absent when the script has sent no video', () => {
  show([]);
  expect(screen.queryByRole('region')).toBeNull();
});
