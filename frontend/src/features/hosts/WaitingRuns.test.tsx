import { MantineProvider } from '@mantine/core';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { HostPage } from '@/api/hosts';
import { keys } from '@/api/keys';
import { Meter } from './Meter';
import { WaitingRuns } from './WaitingRuns';

const sent = vi.hoisted(() => {
  const requests: [string, unknown][] = [];
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/runs/names')) return Response.json({ shared: '', items: [] });
    const text = await request.text();
    requests.push([pathname, text && JSON.parse(text)]);
    return Response.json({});
  };
  return requests;
});

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

async function show(hosts: HostPage, role = 'operator') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role });
  client.setQueryData(keys.hosts(), hosts);
  const Shown = () => {
    const { data = hosts } = useQuery({
      queryKey: keys.hosts(),
      staleTime: Infinity,
      queryFn: () => client.getQueryData<HostPage>(keys.hosts()) ?? hosts,
    });
    return <WaitingRuns hosts={data} />;
  };
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <Shown />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

it('WaitingRuns lists the runs in order with their reasons', async () => {
  await show(page, 'viewer');
  expect(screen.getByRole('heading', { name: '3 runs are waiting' })).toBeTruthy();
  const cells = screen.getAllByRole('cell').map((cell) => cell.textContent);
  expect(cells).toEqual(['1', 'first', '5', 'gpu on lab', 'lab is offline', 'just now']);
  expect(screen.getByText('and 2 more runs')).toBeTruthy();
});

it('WaitingRuns moves runs to the front, by an arrow key and by dragging, and cancels them', async () => {
  const [waiting] = page.waiting_runs;
  if (!waiting) throw new Error('no run');
  const runs = ['a', 'b', 'c'].map((id) => ({ ...waiting, id, name: id }));
  await show({ ...page, waiting_runs: runs });
  const order = () => screen.getAllByRole('link').map(({ textContent }) => textContent);
  const asked = () => sent.at(-1);
  fireEvent.click(screen.getByRole('button', { name: 'Move c to the front' }));
  await waitFor(() => expect(asked()).toEqual(['/api/v1/runs/c/queue', { after: null }]));
  expect(order()).toEqual(['c', 'a', 'b']);
  fireEvent.keyDown(screen.getByRole('button', { name: /^Move c:/ }), { key: 'ArrowDown' });
  await waitFor(() => expect(asked()).toEqual(['/api/v1/runs/c/queue', { after: 'a' }]));
  expect(order()).toEqual(['a', 'c', 'b']);
  fireEvent.keyDown(screen.getByRole('button', { name: /^Move c:/ }), { key: 'ArrowUp' });
  await waitFor(() => expect(asked()).toEqual(['/api/v1/runs/c/queue', { after: null }]));
  const data = new Map<string, string>();
  const dataTransfer = {
    setData: (kind: string, value: string) => data.set(kind, value),
    getData: (kind: string) => data.get(kind) ?? '',
    types: ['application/x-callboard-run'],
  };
  const rows = screen.getAllByRole('row').slice(1);
  const [first, , last] = rows;
  if (!first || !last) throw new Error('no rows');
  fireEvent.dragStart(last, { dataTransfer });
  fireEvent.dragOver(first, { dataTransfer });
  fireEvent.drop(first, { dataTransfer });
  await waitFor(() => expect(asked()).toEqual(['/api/v1/runs/b/queue', { after: null }]));
  expect(order()).toEqual(['b', 'c', 'a']);
  fireEvent.click(screen.getByRole('button', { name: 'Cancel a' }));
  await waitFor(() => expect(asked()?.[0]).toBe('/api/v1/runs/a/stop'));
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
