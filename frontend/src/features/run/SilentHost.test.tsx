import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { keys } from '@/api/keys';
import { FullDisk, SilentHost } from './Notice';

afterEach(cleanup);

function shown(host: string | null, alive: boolean, stopped_at: string | null = null): string {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  const last_seen_at = new Date(Date.now() - 150_000).toISOString();
  client.setQueryData(keys.hostSilence(), { items: [{ id: 'lab', alive, last_seen_at, stopped_at }] });
  const run = { host } as Run;
  return render(
    <QueryClientProvider client={client}>
      <SilentHost run={run} />
    </QueryClientProvider>,
  ).container.textContent;
}

it('names a host that has stopped responding, and since when', () => {
  expect(shown('lab', false)).toMatch(/^Host lab has not responded since .+ ago\./);
});

it('states when the worker of a host was stopped', () => {
  const stopped_at = new Date(Date.now() - 150_000).toISOString();
  expect(shown('lab', false, stopped_at)).toMatch(/^The worker of host lab stopped .+ ago\./);
});

it.each([
  ['lab', true],
  [null, false],
])('shows nothing for host %s, alive %s', (host, alive) => {
  expect(shown(host, alive)).toBe('');
});

it.each([
  ['3 MiB free', /^The disk of host lab: 3 MiB free\..+Free some space on lab: the run then continues/],
  [null, /^$/],
])('says on a run that the disk of its host is full: %s', (disk_problem, text) => {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(keys.hostSilence(), { items: [{ id: 'lab', alive: false, load: { disk_problem } }] });
  const { container } = render(
    <QueryClientProvider client={client}>
      <FullDisk run={{ host: 'lab' } as Run} />
    </QueryClientProvider>,
  );
  expect(container.textContent).toMatch(text);
});
