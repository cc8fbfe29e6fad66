import { QueryClient } from '@tanstack/react-query';
import { cleanup, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { runQuery } from '@/api/runs';
import { openPage } from '@/routes/-openPage';
import { Route } from './index';

const { requests, service } = vi.hoisted(() => {
  const sent: URL[] = [];
  const state = { isDeleted: false };
  // The service has not answered yet.
  globalThis.fetch = (request) => {
    sent.push(new URL((request as Request).url));
    if (!state.isDeleted) return new Promise(() => undefined);
    return Promise.resolve(Response.json({ title: 'Not Found', detail: 'no such run' }, { status: 404 }));
  };
  return { requests: sent, service: state };
});

// They have tests of their own, and need more of a run.
vi.mock('@/features/run/RunHeader', () => ({ RunHeader: () => null }));
vi.mock('@/features/curves/KeyMetrics', () => ({ KeyMetrics: () => null }));
vi.mock('@/features/curves/MetricCharts', () => ({ MetricCharts: () => null }));

afterEach(cleanup);

/** Opens the page of run R at an address. */
async function open(search: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const run = { id: 'R', name: 'a run', state: 'finished', attempt: 1, origin: 'callboard', spec: {} };
  client.setQueryData(runQuery('R').queryKey, { ...run, attempts: [], processes: [], warnings: [] } as never);
  await openPage(Route, '/runs/$runId/', `/runs/R${search}`, client);
  return client;
}

it.each([
  ['', []],
  ['?style=%223%22', ['3']],
  ['?style=3', ['3']],
])('RunPage at "%s" draws the run in the style of the page that led to it', async (search, styles) => {
  requests.length = 0;
  await open(search);
  const figure = () => requests.find(({ pathname }) => pathname === '/api/v1/figures');
  await waitFor(() => expect(figure()).toBeTruthy());
  expect(figure()?.searchParams.getAll('style')).toEqual(styles);
});

it('the page of a run that is deleted while it is shown says so', async () => {
  const client = await open('');
  expect(screen.queryByRole('heading', { name: 'Not found' })).toBeNull();
  service.isDeleted = true;
  await client.refetchQueries(runQuery('R'));
  expect(await screen.findByRole('heading', { name: /not found/i })).toBeTruthy();
  service.isDeleted = false;
});
