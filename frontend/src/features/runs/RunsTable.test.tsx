import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Run } from '@/api/runs';
import { COLUMNS } from './columns';
import { RunsTable } from './RunsTable';
import type { Selection } from './selection';

vi.hoisted(() => {
  // The service has not answered yet.
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(() => {
  window.dispatchEvent(new Event('afterprint'));
  cleanup();
  vi.unstubAllGlobals();
});

const RUNS = ['A', 'B', 'C'].map((id) => ({
  ...{ id, name: `run ${id}`, algorithm: 'paac', environment: 'Catch-v0', state: 'finished' },
  ...{ origin: 'callboard', agent_steps: 0, created_at: '2026-01-01T00:00:00Z', score: null, progress: null },
})) as unknown as Run[];

/** The table of three runs, as it is printed: the screen of a test has no height. */
async function show(selected: string[], narrow: boolean) {
  vi.stubGlobal('matchMedia', (query: string) => ({
    matches: narrow && query.includes('max-width'),
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
  }));
  const ids = new Set(selected);
  const selection = { ids, has: (id: string) => ids.has(id), any: ids.size > 0 } as unknown as Selection;
  const table = (
    <RunsTable
      runs={RUNS}
      total={3}
      columns={COLUMNS.filter(({ id }) => id === 'name')}
      layout={{} as never}
      onLayout={() => undefined}
      selection={selection}
      sort="name"
      onSort={() => undefined}
      onEndReached={() => undefined}
    />
  );
  const history = createMemoryHistory();
  const router = createRouter({ routeTree: createRootRoute({ component: () => table }), history });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  await screen.findByRole('grid');
  act(() => void window.dispatchEvent(new Event('beforeprint')));
  return history;
}

const styleOf = (name: string) =>
  new URL(screen.getByRole<HTMLAnchorElement>('link', { name }).href).searchParams.get('style');

it.each([false, true])('RunsTable opens selected runs in their styles; on a phone: %s', async (narrow) => {
  const history = await show(['C', 'A'], narrow);
  // Those of the order of selection.
  expect(['run A', 'run B', 'run C'].map(styleOf)).toEqual(['"1"', null, null]);
  fireEvent.keyDown(screen.getByRole('row', { selected: true, name: /run A/ }), { key: 'Enter' });
  await waitFor(() => expect(decodeURIComponent(history.location.href)).toBe('/runs/A?style="1"'));
});
