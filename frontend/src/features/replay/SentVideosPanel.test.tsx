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
        <SentVideosPanel run="R" onShow={onShow} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  return onShow;
}

it('leads to the videos that the script has sent', () => {
  const onShow = show([{ id: 'V', run_id: 'R' } as Video]);
  expect(screen.getByText(/Its script has sent videos/)).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Show the videos' }));
  expect(onShow).toHaveBeenCalledOnce();
});

it('shows that the script has sent no video', () => {
  show([]);
  expect(screen.getByText(/has sent no video yet/)).toBeTruthy();
  expect(screen.queryByRole('button')).toBeNull();
});
