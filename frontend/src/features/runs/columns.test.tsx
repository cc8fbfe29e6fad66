import { MantineProvider } from '@mantine/core';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { COLUMNS } from './columns';

afterEach(cleanup);

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
  expect(new URL(href).search).toBe('?archived=true&q=tag%3Dlr&sort=name');
});
