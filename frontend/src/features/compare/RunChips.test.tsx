import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Run } from '@/api/runs';
import { RunChips } from './RunChips';

vi.hoisted(() => {
  // The service has not answered yet.
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUNS = ['A', 'B'].map((id) => ({ id, name: `run ${id}`, spec: {} }) as unknown as Run);

it('chips lead to the runs in the styles that are drawn', async () => {
  const chips = (
    <RunChips
      runs={RUNS}
      names={{ shared: '', of: ({ name }) => name, label: ({ name }) => name }}
      ids={['A', 'B']}
      missing={[]}
      styles={
        new Map([
          ['A', 0],
          ['B', 4],
        ])
      }
      onStyle={() => undefined}
      hidden={new Set()}
      onHide={() => undefined}
      onAdd={() => undefined}
      onRemove={() => undefined}
      finder={{ current: null }}
    />
  );
  const router = createRouter({
    routeTree: createRootRoute({ component: () => chips }),
    history: createMemoryHistory(),
  });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  const links = await screen.findAllByRole<HTMLAnchorElement>('link');
  expect(links.map(({ href }) => new URL(href).searchParams.get('style'))).toEqual([null, '"4"']);
});
