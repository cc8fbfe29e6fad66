import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { RunDetail } from '@/api/runs';
import { RunHeader } from './RunHeader';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUN = {
  id: '00000000000000000000000001',
  name: 'one',
  origin: 'callboard',
  algorithm: 'paac',
  environment: 'CartPole-v1',
  state: 'finished',
  seed: 1,
  seed_is_known: true,
  agent_steps: 1000,
  frames: 1000,
  episodes: 9,
  attempt: 1,
  attempts: [],
  children: [],
  tags: [],
  notes: '',
  created_at: '2026-11-20T10:00:00Z',
  started_at: '2026-11-20T10:00:00Z',
} as unknown as RunDetail;

async function show(role: string, run = RUN) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role });
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <RunHeader run={run} onDeleted={() => undefined} />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

it('RunHeader disables what a viewer may not do, with the reason', async () => {
  await show('viewer');
  for (const name of ['Resume', 'Archive', 'Delete', 'Clone', 'Fork']) {
    const button = screen.getByRole('button', { name });
    expect(button.getAttribute('aria-disabled')).toBe('true');
    expect(button.title).toBe('Requires the role operator; your role is viewer.');
  }
  expect(screen.getByRole('button', { name: 'Export' }).getAttribute('aria-disabled')).toBeNull();
});

it('RunHeader offers an operator every action', async () => {
  await show('operator');
  for (const name of ['Resume', 'Archive', 'Delete'])
    expect(screen.getByRole('button', { name }).getAttribute('aria-disabled')).toBeNull();
  for (const name of ['Clone', 'Fork']) expect(screen.getByRole('link', { name })).toBeTruthy();
});

it('RunHeader names no seed of a run whose script has named none', async () => {
  await show('viewer');
  expect(screen.getByText(/paac on CartPole-v1/).textContent).toContain(', seed 1');
  cleanup();
  await show('viewer', { ...RUN, origin: 'external', seed: 0, seed_is_known: false });
  expect(screen.getByText(/paac on CartPole-v1/).textContent).not.toContain('seed');
});
