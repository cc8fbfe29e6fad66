import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, render, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { runQuery } from '@/api/runs';
import { runSearch } from '@/lib/search';
import RunPage from './RunPage';

const { requests } = vi.hoisted(() => {
  const sent: URL[] = [];
  // The client keeps the function that it finds when it is loaded. The service has not answered yet.
  globalThis.fetch = (request) => {
    sent.push(new URL((request as Request).url));
    return new Promise(() => undefined);
  };
  return { requests: sent };
});

// They have tests of their own, and need more of a run.
vi.mock('@/features/run/RunHeader', () => ({ RunHeader: () => null }));
vi.mock('@/features/curves/KeyMetrics', () => ({ KeyMetrics: () => null }));
vi.mock('@/features/curves/MetricCharts', () => ({ MetricCharts: () => null }));

afterEach(cleanup);

/** Opens the page of run R at an address. */
async function open(search: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const run = { id: 'R', name: 'a run', state: 'finished', attempt: 1, origin: 'callboard', spec: {} };
  client.setQueryData(runQuery('R').queryKey, { ...run, attempts: [], warnings: [] } as never);
  const rootRoute = createRootRoute();
  const shell = createRoute({ getParentRoute: () => rootRoute, id: 'shell' });
  const page = createRoute({
    getParentRoute: () => shell,
    path: '/runs/$runId',
    validateSearch: runSearch,
    component: RunPage,
  });
  const router = createRouter({
    routeTree: rootRoute.addChildren([shell.addChildren([page])]),
    history: createMemoryHistory({ initialEntries: [`/runs/R${search}`] }),
  });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

it.each([
  ['', []],
  ['?style=%223%22', ['3']],
  ['?style=3', ['3']],
])('RunPage at "%s" draws the run in the style of the page that led to it', async (search, styles) => {
  requests.length = 0;
  await open(search);
  const figure = () => requests.find(({ pathname }) => pathname === '/api/v1/figures');
  await waitFor(() => expect(figure()).toBeTruthy());
  expect(figure()?.searchParams.getAll('style')).toEqual(styles);
});
