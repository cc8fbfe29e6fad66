import { MantineProvider } from '@mantine/core';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { ApiProblem } from '@/api/problem';
import { PageProblem, titleOf } from './feedback';

afterEach(cleanup);

async function show(error: unknown): Promise<void> {
  const rootRoute = createRootRoute({
    component: () => (
      <MantineProvider env="test">
        <PageProblem error={error} onRetry={() => undefined} back="/sweeps" />
      </MantineProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

it.each([
  ['There is nothing at this address', /^There is nothing at this address\. It may be mistyped/],
  ['sweep A does not exist', /^Sweep A does not exist\.$/],
  ['', /^There is nothing at this address\. /],
])('PageProblem shows the same for what is missing as an unknown address: %s', async (detail, expected) => {
  const missing = new ApiProblem(404, 'Not found', detail);
  await show(missing);
  expect(screen.getByText(expected)).toBeTruthy();
  expect(screen.getByRole('link', { name: 'Back to sweeps' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  expect(titleOf(missing, 'Sweep')).toBe('Not found');
});

it('PageProblem offers another try after any other error', async () => {
  const failed = new ApiProblem(503, 'The service is not ready', '');
  await show(failed);
  expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy();
  expect(titleOf(failed, 'Sweep')).toBe('Sweep');
});
