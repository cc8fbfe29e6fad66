import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { createQueryClient } from '@/api/client';
import { openPage } from '@/routes/-openPage';
import { Route } from './storage';

const service = vi.hoisted(() => {
  const state = { requests: [] as string[], hangs: false };
  globalThis.fetch = (input) => {
    state.requests.push(new URL((input as Request).url).pathname);
    if (state.hangs) return new Promise(() => undefined);
    return Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }));
  };
  return state;
});

afterEach(cleanup);

it('StoragePage says what it cannot read, and asks no more than twice by itself', async () => {
  await openPage(Route, '/settings/storage', '/settings/storage', createQueryClient());
  await waitFor(() => expect(screen.getAllByRole('alert')).toHaveLength(5));
  expect(screen.queryByRole('status', { name: /^Loading/ })).toBeNull();
  const counts = Map.groupBy(service.requests, (path) => path);
  expect(Math.max(...[...counts.values()].map(({ length }) => length))).toBeLessThanOrEqual(2);
  // Another attempt at one of them keeps the others.
  service.hangs = true;
  screen
    .getAllByRole('button', { name: 'Try again' })
    .slice(-1)
    .forEach((button) => fireEvent.click(button));
  await waitFor(() => expect(screen.queryAllByRole('alert')).toHaveLength(4));
});
