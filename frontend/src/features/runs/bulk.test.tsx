import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { BulkBar, SelectEverything } from './BulkBar';
import { toFilter } from './filters';
import { RunGroups } from './RunGroups';
import type { Selection } from './selection';

const service = vi.hoisted(() => {
  const state = { requests: [] as URL[], answers: {} as Record<string, unknown> };
  globalThis.fetch = (input) => {
    const url = new URL((input as Request).url);
    state.requests.push(url);
    return Promise.resolve(Response.json(state.answers[url.pathname] ?? {}));
  };
  return state;
});

beforeEach(() => {
  service.requests.length = 0;
});
afterEach(cleanup);

async function show(children: ReactNode, role = 'operator') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role, missing_extras: [] });
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">{children}</MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

const id = (n: number): string => String(n).padStart(26, '0');
const nothing = () => undefined;

it('RunGroups lists 30 runs of a group by their ids', async () => {
  const runs = Array.from({ length: 30 }, (_, n) => id(n));
  const none = { value: null, low: null, high: null };
  const group = {
    key: 'g',
    name: 'large',
    n: 30,
    runs,
    states: {},
    score: none,
    n_scored: 0,
    scores: [],
    agent_steps: 0,
    iterations: 7,
  };
  service.answers = {
    '/api/v1/comparisons/groups': { items: [group], shared_name: '', total: 1, next_cursor: null },
    '/api/v1/runs': {
      items: runs.map((run) => ({ id: run, name: `run ${run}`, state: 'finished', seed: 1, agent_steps: 1 })),
      total: 30,
      next_cursor: null,
    },
  };
  await show(<RunGroups by="group" search={{}} onSelected={nothing} onSort={nothing} onClear={nothing} />);
  expect((await screen.findByRole('cell', { name: /iterations/ })).textContent).toBe('7 iterations');
  fireEvent.click(await screen.findByRole('button', { name: 'Runs of large' }));
  await screen.findByRole('link', { name: `run ${id(29)}` });
  const asked = service.requests.find(({ pathname }) => pathname === '/api/v1/runs')?.searchParams;
  // A filter takes fewer terms.
  expect(asked?.get('filter')).toBeNull();
  expect(asked?.getAll('id')).toEqual(runs);
});

const matching = (n: number) => ({
  filter: toFilter(
    {},
    Array.from({ length: n }, (_, at) => id(at)),
  ),
  expected: 5,
});

it('BulkBar shows that too many runs are excluded', async () => {
  await show(<BulkBar ids={new Set()} matching={matching(70)} canFork={false} onClear={nothing} />);
  const reason = /^Too many runs are excluded/;
  for (const name of ['Archive…', 'Delete…', 'Export']) {
    expect(screen.getByRole('button', { name }).title).toMatch(reason);
  }
  expect(screen.getByRole('status').textContent).toContain('exclude at most about 60');
});

it('BulkBar acts on what matches but 60 runs', async () => {
  await show(<BulkBar ids={new Set()} matching={matching(60)} canFork={false} onClear={nothing} />);
  expect(screen.getByRole('button', { name: 'Archive…' }).title).toBe('');
  expect(screen.getByRole('status').textContent).toBe('All 5 runs that match selected');
});

it('BulkBar disables Fork with the reason for a viewer', async () => {
  await show(<BulkBar ids={new Set([id(1)])} canFork onClear={nothing} />, 'viewer');
  const fork = screen.getByRole('button', { name: 'Fork' });
  expect(fork.title).toBe('Requires the role operator; your role is viewer.');
  expect(fork.getAttribute('aria-disabled')).toBe('true');
});

it('BulkBar compares at most 100 runs', async () => {
  const ids = (n: number) => new Set(Array.from({ length: n }, (_, at) => id(at)));
  await show(<BulkBar ids={ids(101)} canFork={false} onClear={nothing} />);
  expect(screen.getByRole('button', { name: 'Compare' }).title).toBe('At most 100 runs can be compared.');
  expect(screen.getByRole('button', { name: 'Archive…' }).title).toBe('');
  cleanup();
  await show(<BulkBar ids={ids(100)} canFork={false} onClear={nothing} />);
  expect(screen.getByRole('link', { name: 'Compare' })).toBeTruthy();
});

it('RunGroups refuses actions on a group of which it knows only some runs', async () => {
  const group = {
    key: 'g',
    name: 'PAAC',
    n: 1000,
    runs: Array.from({ length: 100 }, (_, n) => id(n)),
    states: {},
    score: { value: null, low: null, high: null },
    n_scored: 0,
    scores: [],
    agent_steps: 0,
    iterations: 0,
  };
  service.answers = {
    '/api/v1/comparisons/groups': { items: [group], shared_name: '', total: 1, next_cursor: null },
  };
  await show(
    <RunGroups
      by="algorithm"
      search={{ selected: 'g' }}
      onSelected={nothing}
      onSort={nothing}
      onClear={nothing}
    />,
  );
  const archive = await screen.findByRole('button', { name: 'Archive…' });
  expect(archive.title).toMatch(/^PAAC has 1,000 runs, too many for a group/);
  expect(archive.getAttribute('aria-disabled')).toBe('true');
});

it('BulkBar unarchives in the list of archived runs', async () => {
  await show(<BulkBar ids={new Set([id(1)])} archived canFork={false} onClear={nothing} />);
  expect(screen.getByRole('button', { name: 'Unarchive…' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Archive…' })).toBeNull();
});

it('SelectEverything offers all runs that match once all loaded ones are selected', async () => {
  const selectEverything = vi.fn();
  const selection = (selected: string[], everything = false) =>
    ({
      everything,
      has: (run: string) => selected.includes(run),
      selectEverything,
    }) as unknown as Selection;
  const offer = (chosen: Selection) => (
    <SelectEverything loaded={['a', 'b']} total={291} selection={chosen} />
  );
  await show(offer(selection(['a', 'b'])));
  fireEvent.click(screen.getByRole('button', { name: 'Select all 291 that match' }));
  expect(selectEverything).toHaveBeenCalledOnce();
  for (const none of [selection(['a']), selection(['a', 'b'], true)]) {
    cleanup();
    await show(offer(none));
    expect(screen.queryByRole('button')).toBeNull();
  }
});

it('BulkBar tags by Enter in the field of the tags, and keeps the selection', async () => {
  const done = { items: [{ id: id(1), name: 'one', done: true, detail: '' }], n_done: 1, n_refused: 0 };
  service.answers = { '/api/v1/runs/bulk': done };
  const cleared = vi.fn();
  await show(<BulkBar ids={new Set([id(1)])} canFork={false} onClear={cleared} />);
  fireEvent.click(screen.getByRole('button', { name: 'Tag…' }));
  await screen.findByRole('button', { name: 'Tag 1 run' });
  const tags = screen.getByRole<HTMLInputElement>('textbox', { name: 'Tags' });
  expect(tags.form).not.toBeNull();
  if (tags.form) fireEvent.submit(tags.form); // nothing is typed yet
  fireEvent.change(tags, { target: { value: 'baseline' } });
  if (tags.form) fireEvent.submit(tags.form);
  await vi.waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(cleared).not.toHaveBeenCalled();
  expect(service.requests.filter(({ pathname }) => pathname === '/api/v1/runs/bulk')).toHaveLength(2);
});
