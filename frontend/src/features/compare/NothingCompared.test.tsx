import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { NothingCompared } from './NothingCompared';

afterEach(cleanup);

const onRuns = vi.fn();

async function show(scores: readonly (number | null)[]): Promise<void> {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  const items = scores.map((score, at) => ({ id: `R${at}`, score }));
  const query = { limit: 20, archived: 'all' as const };
  client.setQueryData(keys.runs(query), { pages: [{ items, total: items.length }], pageParams: [null] });
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <NothingCompared onRuns={onRuns} />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

it('NothingCompared explains itself, and begins with the latest two runs that have a score', async () => {
  await show([null, 3, null, 5, 7]);
  expect(screen.getByText(/two learning rates with five seeds/)).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Compare the latest two' }));
  expect(onRuns).toHaveBeenCalledWith(['R1', 'R3']);
});

it('NothingCompared offers no comparison of one run', async () => {
  await show([null, 3]);
  expect(screen.queryByRole('button')).toBeNull();
  expect(screen.getByRole('link', { name: 'Select runs in the list' })).toBeTruthy();
});
