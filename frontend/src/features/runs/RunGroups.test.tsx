import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GroupBy } from '@/api/comparisons';
import { keys } from '@/api/keys';
import { groupFilter, groupSort, toQuery, type RunsSearch } from './filters';
import { RunGroups } from './RunGroups';

const service = vi.hoisted(() => {
  const state = { requests: [] as URL[], answer: {} as object, fails: false };
  globalThis.fetch = (input) => {
    state.requests.push(new URL((input as Request).url));
    const answer = state.fails ? { title: 'Internal Server Error' } : state.answer;
    return Promise.resolve(Response.json(answer, { status: state.fails ? 500 : 200 }));
  };
  return state;
});
afterEach(() => {
  cleanup();
  service.requests.length = 0;
  service.fails = false;
});

const id = (n: number): string => String(n).padStart(26, '0');
const GROUP = {
  key: 'g',
  name: 'PAAC on Pong',
  algorithm: 'paac',
  environment: 'ALE/Pong-v5',
  n: 5,
  states: { finished: 5 },
  runs: [1, 2, 3, 4, 5].map(id),
  n_scored: 5,
  score: { value: 470.9, low: 424.8, high: 500 },
  scores: [424.8, 470.9, 500],
  best_return: 2850,
  agent_steps: 100,
  iterations: 0,
};

async function show(
  by: GroupBy,
  search: RunsSearch,
  onSort: (sort: string) => void = () => undefined,
  next_cursor: string | null = null,
  onSelected: (keys: string | undefined) => void = () => undefined,
) {
  service.answer = { items: [GROUP], shared_name: '', total: 1, next_cursor };
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role: 'operator', missing_extras: [] });
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <RunGroups
            by={by}
            search={search}
            onSelected={onSelected}
            onSort={onSort}
            onClear={() => undefined}
          />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
  await screen.findByRole('table');
  return router;
}

describe('RunGroups', () => {
  it('sorts by the address, best first at the first press, and the other way round at the second', async () => {
    const onSort = vi.fn();
    await show('seed', {}, onSort);
    fireEvent.click(screen.getByRole('button', { name: 'Median score' }));
    expect(onSort).toHaveBeenLastCalledWith('-score');
    fireEvent.click(screen.getByRole('button', { name: 'Config' }));
    expect(onSort).toHaveBeenLastCalledWith('name');
    cleanup();
    await show('seed', { sort: '-score' }, onSort);
    expect(service.requests.at(-1)?.searchParams.get('sort')).toBe('-score');
    expect(screen.getByRole('columnheader', { name: 'Median score' }).getAttribute('aria-sort')).toBe(
      'descending',
    );
    fireEvent.click(screen.getByRole('button', { name: 'Median score' }));
    expect(onSort).toHaveBeenLastCalledWith('score');
  });

  it('is selected and compared by the keys of the list', async () => {
    const onSelected = vi.fn();
    await show('seed', {}, undefined, null, onSelected);
    fireEvent.keyDown(document.body, { key: 'j' });
    expect(document.activeElement).toBe(screen.getByRole('checkbox', { name: 'Select PAAC on Pong' }));
    fireEvent.keyDown(document.activeElement as Element, { key: 'x' });
    expect(onSelected).toHaveBeenLastCalledWith('g');
    cleanup();
    const router = await show('seed', { selected: 'g' });
    fireEvent.keyDown(document.body, { key: 'c' });
    await waitFor(() =>
      expect(router.state.location.search).toEqual({
        list: 'beside',
        runs: GROUP.runs.join(','),
        group: 'seed',
      }),
    );
  });

  it('has median and interval in columns of their own', async () => {
    await show('seed', {});
    const cells = screen.getAllByRole('cell').map(({ textContent }) => textContent);
    expect(cells.slice(-4)).toEqual(['470.9[424.8, 500.0]', '[424.8, 500.0]', '2,850', '100']);
  });

  it('keeps its groups when the next page fails, which is fetched again on request', async () => {
    await show('seed', {}, undefined, 'next');
    service.fails = true;
    fireEvent.click(screen.getByRole('button', { name: /show more$/ }));
    const retry = await screen.findByRole('button', { name: 'Try again' });
    expect(screen.getByText('PAAC on Pong')).toBeTruthy();
    service.fails = false;
    service.answer = { items: [{ ...GROUP, key: 'h', name: 'A3C on Pong' }], total: 2, next_cursor: null };
    fireEvent.click(retry);
    expect(await screen.findByText('A3C on Pong')).toBeTruthy();
    expect(screen.getByText('PAAC on Pong')).toBeTruthy();
    expect(screen.queryByRole('alert')).toBeNull();
    const cursors = service.requests.map(({ searchParams }) => searchParams.get('cursor'));
    expect(cursors).toEqual([null, 'next', 'next']);
  });

  it('links a config to the comparison of its seeds, and another group to its runs', async () => {
    await show('seed', {});
    const href = () =>
      decodeURIComponent(screen.getByRole<HTMLAnchorElement>('link').getAttribute('href') ?? '');
    expect(href()).toBe(`/?list=beside&runs=${GROUP.runs.join(',')}&group=seed`);
    cleanup();
    await show('algorithm', { q: 'tag:new', group: 'algorithm' });
    expect(href()).toBe('/?q=(tag:new)+algorithm="g"');
  });
});

describe('the filter of a group', () => {
  it('names the value, whatever it contains', () => {
    expect(groupFilter('environment', 'ALE/Pong-v5')).toBe('environment="ALE/Pong-v5"');
    expect(groupFilter('group', encodeURIComponent('a "b", c'))).toBe('group="a \\"b\\", c"');
    expect(groupFilter('config.learning_rate', encodeURIComponent('0.001'))).toBe(
      'config.learning_rate="0.001"',
    );
    expect(groupFilter('config.my setting', encodeURIComponent('"x"'))).toBe('"config.my setting"="x"');
    // Settings without a section.
    expect(groupFilter('device', encodeURIComponent('"auto"'))).toBe('device="auto"');
  });
  it('is missing where there is no value', () => {
    expect(groupFilter('group', '')).toBeUndefined();
    expect(groupFilter('config.beta', 'null')).toBeUndefined();
    expect(groupFilter('annealing_agent_steps', 'null')).toBeUndefined();
    expect(groupFilter('seed', 'g')).toBeUndefined();
  });
});

it('an order that only groups have is not asked of the list, and the other way round', () => {
  expect(toQuery({ sort: '-n' }).sort).toBe('-created_at');
  expect(toQuery({ sort: 'host' }).sort).toBe('host');
  expect(groupSort({ sort: '-n' })).toBe('-n');
  expect(groupSort({ sort: 'host' })).toBeUndefined();
});
