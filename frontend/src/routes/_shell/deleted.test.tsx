import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openPage } from '@/routes/-openPage';
import { Route } from './deleted';

/** A service with deleted runs, which it can restore. */
const service = vi.hoisted(() => {
  const state = { deleted: [] as string[], bodies: [] as [string, unknown][] };
  const run = (id: string) => ({
    ...{ id, name: `run ${id}`, state: 'finished', algorithm: 'paac', environment: 'Catch-v0', score: 1 },
    deleted_at: new Date().toISOString(),
    restorable_until: new Date(Date.now() + 3_600_000).toISOString(),
  });
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const { pathname } = new URL(request.url);
    if (pathname === '/api/v1/auth/me') return Response.json({ name: 'owner', role: 'admin' });
    if (pathname === '/api/v1/runs/deleted') {
      const items = state.deleted.map(run);
      return Response.json({ items, total: items.length, next_cursor: null });
    }
    const body = (await request.json()) as { ids: string[] };
    state.bodies.push([pathname, body]);
    state.deleted = state.deleted.filter((id) => !body.ids.includes(id));
    return Response.json({ items: body.ids.map((id) => ({ id, done: true })) });
  };
  return state;
});

beforeEach(() => {
  service.deleted = ['A', 'B', 'C'];
  service.bodies = [];
});
afterEach(cleanup);

const open = () => openPage(Route, '/deleted', '/deleted');

it('DeletedPage restores a run, which then leaves its list', async () => {
  await open();
  fireEvent.click(await screen.findByRole('button', { name: 'Restore run B' }));
  expect(await screen.findByText('Restored 1 run.')).toBeTruthy();
  await waitFor(() => expect(screen.queryByText('run B')).toBeNull());
  expect(screen.getByText('run A')).toBeTruthy();
  const changes = service.bodies.filter(([path]) => path !== '/api/v1/runs/names');
  expect(changes).toMatchObject([['/api/v1/runs/bulk', { action: 'restore', ids: ['B'] }]]);
});

it('DeletedPage restores the selected runs together', async () => {
  await open();
  fireEvent.click(await screen.findByRole('checkbox', { name: 'Select all loaded runs' }));
  fireEvent.click(screen.getByRole('checkbox', { name: 'Select run A' }));
  fireEvent.click(screen.getByRole('button', { name: 'Restore 2 runs' }));
  expect(await screen.findByText('Restored 2 runs.')).toBeTruthy();
  await waitFor(() => expect(screen.queryByText('run C')).toBeNull());
  expect(service.deleted).toEqual(['A']);
});
