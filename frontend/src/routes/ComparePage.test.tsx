import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { compareSearch } from '@/lib/search';
import ComparePage from './ComparePage';

vi.hoisted(() => {
  // The service has not answered yet. The client keeps the function that it finds when it is loaded.
  globalThis.fetch = () => new Promise(() => undefined);
});

type Charts = { metrics: readonly string[]; onMetrics: (metrics: readonly string[]) => void };

// Charts have tests of their own; here is what they report.
vi.mock('@/features/compare/CompareCharts', () => ({
  CompareCharts: ({ metrics, onMetrics }: Charts) => (
    <>
      <button onClick={() => onMetrics(metrics.toReversed())}>Move</button>
      <button onClick={() => onMetrics([...metrics, 'loss/entropy'])}>Add</button>
    </>
  ),
}));

afterEach(cleanup);

it('ComparePage adds a metric to the history, but not its moves', async () => {
  const rootRoute = createRootRoute();
  const shell = createRoute({ getParentRoute: () => rootRoute, id: 'shell' });
  const page = createRoute({
    getParentRoute: () => shell,
    path: '/compare',
    validateSearch: compareSearch,
    component: ComparePage,
  });
  const search = '?runs=00000000000000000000000001&metrics=loss%2Fvalue%2Closs%2Fpolicy';
  const history = createMemoryHistory({ initialEntries: [`/compare${search}`] });
  const router = createRouter({ routeTree: rootRoute.addChildren([shell.addChildren([page])]), history });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  const metrics = () => new URLSearchParams(history.location.search).get('metrics');
  fireEvent.click(await screen.findByRole('button', { name: 'Move' }));
  await waitFor(() => expect(metrics()).toBe('loss/policy,loss/value'));
  expect(history.length).toBe(1);
  fireEvent.click(screen.getByRole('button', { name: 'Add' }));
  await waitFor(() => expect(metrics()).toBe('loss/policy,loss/value,loss/entropy'));
  expect(history.length).toBe(2);
});
