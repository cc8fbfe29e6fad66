import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { episodeQuery, episodesQuery } from '@/api/runResources';
import { Toasts } from '@/components/toasts';
import { AgentPanel } from './AgentPanel';

/** The order of each request for episodes, and what the service answers; without it, nothing yet. */
const service = vi.hoisted(() => {
  const state = { sorts: [] as (string | null)[], items: undefined as object[] | undefined };
  globalThis.fetch = (request) => {
    const url = new URL((request as Request).url);
    if (!url.pathname.endsWith('/episodes')) return new Promise(() => undefined);
    state.sorts.push(url.searchParams.get('sort'));
    if (!state.items) return new Promise(() => undefined);
    return Promise.resolve(Response.json({ items: state.items, next_cursor: null }));
  };
  return state;
});

beforeEach(() => {
  localStorage.clear();
  service.sorts = [];
  service.items = undefined;
});
afterEach(cleanup);

const episode = (id: string) => ({ id, kind: 'training', agent_steps: 250, episode_return: 21 });

type Shown = { selected?: string; running?: boolean; recorded?: boolean };

/** Renders the panel of a run whose only recorded episode is E. */
async function show({ selected, running = false, recorded = true }: Shown = {}) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  if (recorded) {
    client.setQueryData(episodeQuery('R', 'E').queryKey, episode('E') as never);
    for (const sort of ['-agent_steps', '-episode_return'])
      client.setQueryData(episodesQuery('R', sort).queryKey, {
        pages: [{ items: [episode('E')] as never, next_cursor: null }],
        pageParams: [null],
      });
  }
  const panel = (
    <AgentPanel run="R" running={running} ended={!running} selected={selected} onDeselect={() => undefined} />
  );
  const history = createMemoryHistory();
  const router = createRouter({ routeTree: createRootRoute({ component: () => panel }), history });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router as never} />
        <Toasts />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByRole('region', { name: 'Agent' });
  return history;
}

const stepsTaken = () => localStorage.getItem('callboard-first-steps') ?? '';

it('AgentPanel remembers that a selected episode has been watched', async () => {
  await show({ selected: 'E' });
  await waitFor(() => expect(stepsTaken()).toContain('replay'));
});

it('AgentPanel remembers that the latest episode has been watched, on request only', async () => {
  await show();
  expect(await screen.findByText('21.0')).toBeTruthy();
  expect(stepsTaken()).not.toContain('replay');
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  await waitFor(() => expect(stepsTaken()).toContain('replay'));
});

it('F opens the full replay of the episode that is shown', async () => {
  const history = await show({ selected: 'E' });
  fireEvent.keyDown(screen.getByRole('radio', { name: 'Latest' }), { key: 'f' });
  await waitFor(() => expect(history.location.pathname).toBe('/runs/R/episodes/E'));
  expect(service.sorts).toEqual([]);
});

it('F opens the full replay of the latest episode while the agent is shown live', async () => {
  const history = await show({ running: true });
  expect(screen.getByRole('button', { name: 'Open the latest full replay' })).toBeTruthy();
  service.items = [episode('L')];
  fireEvent.keyDown(document.body, { key: 'F' });
  await waitFor(() => expect(history.location.pathname).toBe('/runs/R/episodes/L'));
  expect(service.sorts).toEqual(['-agent_steps']);
});

it('F says so when the agent that is shown live has no recorded episode', async () => {
  const history = await show({ running: true, recorded: false });
  service.items = [];
  fireEvent.keyDown(document.body, { key: 'f' });
  expect(await screen.findByText(/^No recorded episode yet/)).toBeTruthy();
  expect(history.location.pathname).toBe('/');
});

it('the agent of a finished run starts with its best recorded episode, named as such', async () => {
  await show({ recorded: false });
  expect(
    screen.getAllByRole('radio').map((radio) => (radio as HTMLInputElement).labels?.[0]?.textContent),
  ).toEqual(['Latest', 'Best recorded']);
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Best recorded' }).checked).toBe(true);
  expect(service.sorts).toEqual(['-episode_return']);
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  expect(service.sorts).toEqual(['-episode_return', '-agent_steps']);
});
