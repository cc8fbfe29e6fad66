import { MantineProvider } from '@mantine/core';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { HostPage } from '@/api/hosts';
import { Meter } from './Meter';
import { WaitingRuns } from './WaitingRuns';

// The time stands still: on a slow machine it would not be "just now".
const NOW = new Date('2026-11-22T08:00:00Z');
beforeEach(() => void vi.setSystemTime(NOW));
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const page: HostPage = {
  items: [],
  next_cursor: null,
  waiting: { cpu: 2, gpu: 1 },
  waiting_runs: [
    {
      id: 'A',
      name: 'first',
      priority: 5,
      queue: 'gpu',
      wanted_host: 'lab',
      created_at: NOW.toISOString(),
      reason: 'lab is offline',
    },
  ],
};

it('WaitingRuns lists the runs in order with their reasons', async () => {
  const rootRoute = createRootRoute({ component: () => <WaitingRuns hosts={page} /> });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
  expect(screen.getByRole('heading', { name: '3 runs are waiting' })).toBeTruthy();
  const cells = screen.getAllByRole('cell').map((cell) => cell.textContent);
  expect(cells).toEqual(['1', 'first', '5', 'gpu on lab', 'lab is offline', 'just now']);
  expect(screen.getByText('and 2 more runs')).toBeTruthy();
});

it('Meter keeps the height of a graph without a history, and names the scale of one', () => {
  const { container } = render(<Meter label="Slots" value={1} text="1 of 1 in use" />, {
    wrapper: MantineProvider,
  });
  expect(container.querySelector('span[class*=graph]')).toBeTruthy();
  cleanup();
  render(<Meter label="CPU" value={0.5} text="50%" history={[0, 1]} />, { wrapper: MantineProvider });
  expect(screen.getByText('recent, 0–100%')).toBeTruthy();
  cleanup();
  render(<Meter label="CPU" value={0.5} text="50%" history={[0, 1]} duration_s={177} />, {
    wrapper: MantineProvider,
  });
  expect(screen.getByText(/^last 2\smin, 0–100%$/)).toBeTruthy();
});
