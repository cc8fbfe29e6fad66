import { act, cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openPage } from '@/routes/-openPage';
import { Route } from './index';

/** A service with two pages of runs, and groups of them. */
const service = vi.hoisted(() => {
  const state = { cursors: [] as (string | null)[], fails: false };
  const run = (id: string) => ({
    ...{ id, name: `run ${id}`, algorithm: 'paac', environment: 'Catch-v0', state: 'finished', tags: [] },
    ...{ origin: 'callboard', agent_steps: 0, created_at: '2026-01-01T00:00:00Z', score: null, spec: {} },
  });
  const group = (name: string) => ({
    ...{ key: name, name, n: 1, n_scored: 0, scores: [], score: { value: null } },
    states: {},
    runs: ['A'],
  });
  globalThis.fetch = (input) => {
    const { pathname, searchParams } = new URL((input as Request).url);
    if (pathname === '/api/v1/comparisons/groups' && searchParams.get('by') === 'algorithm')
      return Promise.resolve(Response.json({ items: [group('paac')], total: 1, next_cursor: null }));
    if (pathname !== '/api/v1/runs') return new Promise(() => undefined);
    const cursor = searchParams.get('cursor');
    state.cursors.push(cursor);
    if (cursor && state.fails)
      return Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }));
    const page = cursor
      ? { items: [run('B')], next_cursor: null }
      : { items: [run('A')], next_cursor: 'next' };
    return Promise.resolve(Response.json({ ...page, total: 2 }));
  };
  return state;
});

beforeEach(() => {
  localStorage.clear();
  service.cursors = [];
  service.fails = false;
});
afterEach(() => {
  window.dispatchEvent(new Event('afterprint'));
  cleanup();
});

const open = (search: string) => openPage(Route, '/', `/${search}`);

it('RunsPage keeps its list when the next page fails, which is fetched again on request alone', async () => {
  service.fails = true;
  await open('');
  const retry = await screen.findByRole('button', { name: 'Try again' });
  expect(screen.getByRole('grid', { name: 'Runs' })).toBeTruthy();
  act(() => void window.dispatchEvent(new Event('beforeprint')));
  expect(screen.getByRole('row', { name: /run A/ })).toBeTruthy();
  expect(service.cursors).toEqual([null, 'next']);
  service.fails = false;
  fireEvent.click(retry);
  expect(await screen.findByRole('row', { name: /run B/ })).toBeTruthy();
  expect(screen.queryByRole('alert')).toBeNull();
  expect(service.cursors).toEqual([null, 'next', 'next']);
});

it('RunsPage does not show the groups of another grouping while it loads', async () => {
  const { navigate } = await open('?group=algorithm');
  await screen.findByRole('table', { name: 'Runs by algorithm' });
  await act(() => navigate({ to: '/', search: { group: 'environment' } as never }));
  await waitFor(() => expect(screen.getByRole('status', { name: 'Loading the groups…' })).toBeTruthy());
  expect(screen.queryByRole('table')).toBeNull();
});
