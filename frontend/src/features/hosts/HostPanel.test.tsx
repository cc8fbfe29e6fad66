import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Host } from '@/api/hosts';
import { keys } from '@/api/keys';
import { HostPanel } from './HostPanel';

const sent = vi.hoisted(() => {
  const requests: string[] = [];
  globalThis.fetch = async (input) => {
    const { method, url } = input as Request;
    requests.push(`${method} ${new URL(url).pathname}`);
    return Promise.resolve(new Response(null, { status: 204 }));
  };
  return requests;
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
  commands: [],
  versions: {},
  load: { gpus: [], package_problems: {}, recent: { cpu: [], memory: [], gpus: [], duration_s: null } },
  runs: [],
} as unknown as Host;

function show(changes: object) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role: 'operator' });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <HostPanel host={{ ...HOST, ...changes }} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

it('HostPanel removes a host whose worker has ended, after a confirmation', async () => {
  show({ alive: false });
  fireEvent.click(screen.getByRole('button', { name: 'Remove' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Remove lab' }));
  expect(sent).not.toContain('DELETE /api/v1/hosts/lab');
  fireEvent.click(dialog.getByRole('button', { name: 'Remove' }));
  await waitFor(() => expect(sent).toContain('DELETE /api/v1/hosts/lab'));
});

it('HostPanel lists the commands that runs may start', () => {
  show({ commands: ['train', 'sweep-lr'] });
  expect(screen.getByText('train, sweep-lr')).toBeTruthy();
});

it('HostPanel says why the algorithms of a package are off', () => {
  show({ load: { ...HOST.load, package_problems: { 'mine==1.0': 'ImportError: no licence' } } });
  expect(screen.getByRole('alert').textContent).toBe('mine==1.0: ImportError: no licence');
});

it('HostPanel offers to remove no host that is alive', () => {
  show({});
  expect(screen.queryByRole('button', { name: 'Remove' })).toBeNull();
});

it.each([
  [{}, 'accepting runs last heartbeat: 1 min ago'],
  [{ draining: true }, 'draining last heartbeat: 1 min ago'],
  [{ alive: false }, 'offline has not responded since 1 min ago'],
  [{ alive: false, stopped_at: HOST.last_seen_at }, 'stopped 1 min ago'],
])('HostPanel shows the state of a host with %o', (changes, expected) => {
  show(changes);
  const header = screen.getByRole('heading', { name: 'lab' }).parentElement;
  const shown = [...(header?.querySelectorAll(':scope > span') ?? [])].map((element) => element.textContent);
  expect(shown.filter(Boolean).join(' ').replace(/\s/g, ' ')).toBe(expected);
});

it('HostPanel shows use, memory and power of each GPU by its number on the host', () => {
  const use = { gpu_pct: 97.4, memory_used_bytes: 12 * 2 ** 30, memory_bytes: 141 * 2 ** 30 };
  const gpus = [
    { ...use, index: 3, power_w: 411.6, power_limit_w: 700 },
    { ...use, index: null, power_w: null, power_limit_w: null },
    { ...use, index: 2, gpu_pct: null, power_w: 411.6, power_limit_w: 700 },
  ];
  show({ load: { ...HOST.load, gpus } });
  const text = (label: string) =>
    screen.getByRole('meter', { name: label }).getAttribute('aria-valuetext')?.replaceAll('\u00a0', ' ');
  expect(text('GPU 3')).toBe('97%, 12 GiB of 141 GiB, 412 W of 700 W');
  expect(text('GPU 1')).toBe('97%, 12 GiB of 141 GiB');
  const unknown = 'use not reported, 12 GiB of 141 GiB, 412 W of 700 W';
  expect(text('GPU 2')).toBe(unknown);
  const reading = screen.getByRole('meter', { name: 'GPU 2' }).parentElement?.querySelector('.num');
  expect(reading?.textContent.replaceAll('\u00a0', ' ')).toBe(unknown);
  expect(text('CPU')).toBe('not reported');
});
