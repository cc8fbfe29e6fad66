import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { episodeQuery, episodesQuery } from '@/api/runResources';
import { AgentPanel } from './AgentPanel';

const asked = vi.hoisted(() => {
  const sorts: (string | null)[] = [];
  // The client keeps the function that it finds when it is loaded.
  globalThis.fetch = (request) => {
    const url = new URL((request as Request).url);
    if (url.pathname.endsWith('/episodes')) sorts.push(url.searchParams.get('sort'));
    return new Promise(() => undefined);
  };
  return sorts;
});

beforeEach(() => localStorage.clear());
afterEach(cleanup);

const episode = (id: string) => ({ id, kind: 'training', agent_steps: 250, episode_return: 21 });

/** Renders the panel of a run whose only recorded episode is E. */
async function show(selected?: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(episodeQuery('R', 'E').queryKey, episode('E') as never);
  for (const sort of ['-agent_steps', '-episode_return'])
    client.setQueryData(episodesQuery('R', sort).queryKey, {
      pages: [{ items: [episode('E')] as never, next_cursor: null }],
      pageParams: [null],
    });
  const panel = <AgentPanel run="R" running={false} ended selected={selected} onDeselect={() => undefined} />;
  const router = createRouter({
    routeTree: createRootRoute({ component: () => panel }),
    history: createMemoryHistory(),
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

const stepsTaken = () => localStorage.getItem('callboard-first-steps') ?? '';

it('AgentPanel remembers that a selected episode has been watched', async () => {
  await show('E');
  await waitFor(() => expect(stepsTaken()).toContain('replay'));
});

it('AgentPanel remembers that the latest episode has been watched, on request only', async () => {
  await show();
  expect(await screen.findByText('21.0')).toBeTruthy();
  expect(stepsTaken()).not.toContain('replay');
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  await waitFor(() => expect(stepsTaken()).toContain('replay'));
});

it('the agent of a finished run starts with its best recorded episode, named as such', () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AgentPanel run="R" running={false} ended selected={undefined} onDeselect={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(
    screen.getAllByRole('radio').map((radio) => (radio as HTMLInputElement).labels?.[0]?.textContent),
  ).toEqual(['Latest', 'Best recorded']);
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Best recorded' }).checked).toBe(true);
  expect(asked).toEqual(['-episode_return']);
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  expect(asked).toEqual(['-episode_return', '-agent_steps']);
});
