import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { keys } from '@/api/keys';
import { scoresSearch } from '@/lib/search';
import ScoresPage from './ScoresPage';

afterEach(cleanup);

it.each([
  ['', '1', ['1', '3', '5', '10']],
  ['?seeds=7', '7', ['1', '3', '5', '7', '10']],
  ['?min_seeds=20', '20', ['1', '3', '5', '10', '20']],
])('ScoresPage at "%s" shows the number of seeds of its address', async (search, chosen, offered) => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const request = chosen === '1' ? {} : { min_seeds: Number(chosen) };
  const scores = { protocol: 'noop_starts', protocols: [], columns: [], rows: [], rule: 'Best score' };
  client.setQueryData(keys.scores(request), scores);
  client.setQueryData(keys.environments(), []);
  client.setQueryData(keys.hosts(), { items: [] });
  const rootRoute = createRootRoute();
  const shell = createRoute({ getParentRoute: () => rootRoute, id: 'shell' });
  const page = createRoute({
    getParentRoute: () => shell,
    path: '/scores',
    validateSearch: scoresSearch,
    component: ScoresPage,
  });
  const router = createRouter({
    routeTree: rootRoute.addChildren([shell.addChildren([page])]),
    history: createMemoryHistory({ initialEntries: [`/scores${search}`] }),
  });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  const select = await screen.findByRole<HTMLSelectElement>('combobox', { name: 'Seeds' });
  expect(select.value).toBe(chosen);
  expect([...select.options].map(({ value }) => value)).toEqual(offered);
});
