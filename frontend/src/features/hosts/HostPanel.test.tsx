import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Host } from '@/api/hosts';
import { HostPanel } from './HostPanel';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const HOST = {
  id: 'lab',
  last_seen_at: new Date(Date.now() - 90_000).toISOString(),
  stopped_at: null,
  alive: true,
  draining: false,
  queues: ['cpu'],
  slots: 1,
  devices: ['cpu'],
  versions: {},
  load: { gpus: [], recent: { cpu: [], memory: [], gpus: [], duration_s: null } },
  runs: [],
} as unknown as Host;

it.each([
  [{}, 'accepting runs last heartbeat: 1 min ago'],
  [{ draining: true }, 'draining last heartbeat: 1 min ago'],
  [{ alive: false }, 'offline has not responded since 1 min ago'],
  [{ alive: false, stopped_at: HOST.last_seen_at }, 'stopped 1 min ago'],
])('HostPanel shows the state of a host with %o', (changes, expected) => {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <HostPanel host={{ ...HOST, ...changes }} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  const header = screen.getByRole('heading', { name: 'lab' }).parentElement;
  const shown = [...(header?.querySelectorAll(':scope > span') ?? [])].map((element) => element.textContent);
  expect(shown.filter(Boolean).join(' ').replace(/\s/g, ' ')).toBe(expected);
});
