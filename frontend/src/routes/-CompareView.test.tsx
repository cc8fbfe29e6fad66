import { QueryClient } from '@tanstack/react-query';
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { runsByIdQuery } from '@/api/runs';
import type { Panel } from '@/components/run/panels';
import { openPage } from '@/routes/-openPage';
import { Route } from './_shell/index';

vi.hoisted(() => {
  // The service has not answered yet.
  globalThis.fetch = () => new Promise(() => undefined);
});

type Charts = {
  runs: readonly string[];
  trainedS: number;
  panels: readonly Panel[];
  onPanels: (panels: readonly Panel[]) => void;
};

// Charts have tests of their own; here is what they report.
vi.mock('@/features/compare/CompareCharts', () => ({
  CompareCharts: ({ runs, trainedS, panels, onPanels }: Charts) => (
    <>
      <output aria-label="Drawn">{runs.join(',')}</output>
      <output aria-label="Trained">{trainedS}</output>
      <button onClick={() => onPanels(panels.toReversed())}>Move</button>
      <button onClick={() => onPanels([...panels, { kind: 'lines', metrics: ['loss/entropy'] }])}>Add</button>
    </>
  ),
}));

afterEach(cleanup);

const id = (at: number): string => String(at).padStart(26, '0');
const RUN = {
  ...{ name: 'a run', algorithm: 'paac', environment: 'Catch-v0', origin: 'callboard', tags: [] },
  ...{ state: 'finished', seed: 0, agent_steps: 100, score: null, spec: { config: {} } },
};

/** Opens the page at an address, with the runs that are known. */
async function open(search: string, runs: readonly object[] = []) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  if (runs.length > 0) {
    const ids = runs.map((_, at) => id(at));
    const page = { items: runs.map((run, at) => ({ ...RUN, ...run, id: ids[at] })), total: runs.length };
    client.setQueryData(runsByIdQuery(ids).queryKey, { pages: [page as never], pageParams: [null] });
  }
  const { history } = await openPage(Route, '/', `/${search}&list=beside`, client);
  return history;
}

it('Compare adds a metric to the history, but not its moves', async () => {
  const history = await open(`?runs=${id(1)}&metrics=loss%2Fvalue%2Closs%2Fpolicy`);
  const metrics = () => new URLSearchParams(history.location.search).get('metrics');
  fireEvent.click(await screen.findByRole('button', { name: 'Move' }));
  await waitFor(() => expect(metrics()).toBe('loss/policy,loss/value'));
  expect(history.length).toBe(1);
  fireEvent.click(screen.getByRole('button', { name: 'Add' }));
  await waitFor(() => expect(metrics()).toBe('loss/policy,loss/value,loss/entropy'));
  expect(history.length).toBe(2);
});

it('Compare leads from the parameters of requests to its own', async () => {
  const history = await open(`?run=${id(1)}&run=${id(2)}`);
  expect((await screen.findByLabelText('Drawn')).textContent).toBe(`${id(1)},${id(2)}`);
  const search = new URLSearchParams({ list: 'beside', runs: `${id(1)},${id(2)}` });
  await waitFor(() => expect(history.location.search).toBe(`?${search}`));
});

it.each([
  [100, false],
  [101, true],
  [150, true],
])('Compare of %i runs compares 100 at most and says what to do', async (n, isCut) => {
  const all = Array.from({ length: n }, (_, at) => id(at));
  const history = await open(`?runs=${[...all, id(0)].join(',')}`);
  expect((await screen.findByLabelText('Drawn')).textContent).toBe(all.slice(0, 100).join(','));
  const notice = screen.queryByText(new RegExp(`At most 100 runs .* the first 100 of ${n}. Remove some`));
  expect(notice !== null).toBe(isCut);
  if (!isCut) return;
  fireEvent.click(screen.getByRole('button', { name: 'Keep only these 100' }));
  await waitFor(() => expect(screen.queryByText(/At most 100 runs/)).toBeNull());
  expect(new URLSearchParams(history.location.search).get('runs')).toBe(all.slice(0, 100).join(','));
});

it('Compare sums the training time of the runs that have not ended', async () => {
  const runs = [
    { state: 'running', wall_time_s: 30 },
    { state: 'running', wall_time_s: 9 },
    { state: 'queued', wall_time_s: null },
    { state: 'finished', wall_time_s: 500 },
  ];
  await open(`?runs=${runs.map((_, at) => id(at)).join(',')}`, runs);
  expect((await screen.findByLabelText('Trained')).textContent).toBe('39');
});
