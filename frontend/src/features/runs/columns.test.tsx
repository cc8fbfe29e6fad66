import { MantineProvider } from '@mantine/core';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { COLUMNS } from './columns';

afterEach(cleanup);

it('the name of a selected run leads to its page in its style', async () => {
  const name = COLUMNS.find(({ id }) => id === 'name');
  const run = { id: 'R', name: 'lr=0.1', algorithm: 'paac', environment: 'ALE/Pong-v5' } as unknown as Run;
  const router = createRouter({
    routeTree: createRootRoute({
      component: () => name?.cell(run, { name: 'lr 0.1', label: 'lr=0.1: lr 0.1', lineStyle: 3 } as never),
    }),
    history: createMemoryHistory(),
  });
  await router.load();
  render(
    <MantineProvider env="test">
      <RouterProvider router={router as never} />
    </MantineProvider>,
  );
  const { pathname, searchParams } = new URL(screen.getByRole<HTMLAnchorElement>('link').href);
  expect([pathname, searchParams.get('style')]).toEqual(['/runs/R', '"3"']);
});

it('the tag of a run keeps the view of the list', async () => {
  const tags = COLUMNS.find(({ id }) => id === 'tags');
  const run = { tags: ['lr'] } as Run;
  const router = createRouter({
    routeTree: createRootRoute({ component: () => tags?.cell(run, { spark: undefined } as never) }),
    history: createMemoryHistory({ initialEntries: ['/?archived=true&q=old&sort=name'] }),
  });
  await router.load();
  render(
    <MantineProvider env="test">
      <RouterProvider router={router as never} />
    </MantineProvider>,
  );
  const { href } = screen.getByRole<HTMLAnchorElement>('link', { name: 'Runs with tag lr' });
  expect(new URL(href).search).toBe('?q=tag%3Dlr&sort=name&archived=true');
});

it('a rate below one step per second has its digits', () => {
  const rate = COLUMNS.find(({ id }) => id === 'rate');
  render(<>{rate?.cell({ agent_steps: 20, agent_steps_per_s: 0.04 } as Run, {} as never)}</>);
  expect(screen.getByTitle('20 agent steps so far').textContent).toBe('0.04');
});
