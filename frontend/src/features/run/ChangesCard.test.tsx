import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { changesQuery, spreadEpisodesQuery } from '@/api/runResources';
import type { RunDetail } from '@/api/runs';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import ChangesCard from './ChangesCard';

vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUN = { id: 'R', origin: 'callboard', step_unit: 'agent_steps' } as unknown as RunDetail;
const RANGE = [1000, 2000] as const;
const metric = (title: string, rest: object) => ({
  metric: title,
  title,
  unit: '',
  of_machine: false,
  before: 1,
  inside: 1,
  score: 0,
  was_constant: false,
  becomes_not_finite: false,
  ...rest,
});

async function show(zoom: string, items: object[]) {
  const onWatch = vi.fn();
  const onNote = vi.fn();
  const onSearch = vi.fn();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role: 'operator' });
  client.setQueryData(changesQuery('R', { x: 'agent_steps', from: RANGE[0], to: RANGE[1] }).queryKey, {
    agent_steps_from: RANGE[0],
    agent_steps_to: RANGE[1],
    before_from: 0,
    range_from: 1000,
    range_to: 2000,
    n_metrics: items.length,
    items,
    checkpoint: { id: 'C', agent_steps: 900 },
  } as never);
  client.setQueryData(spreadEpisodesQuery('R', 8, RANGE).queryKey, [
    { id: 'E', agent_steps: 1500, episode_return: 21 },
  ] as never);
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <CurveViewProvider search={zoom ? { zoom } : {}} onSearch={onSearch}>
            <ChangesCard run={RUN} selected={undefined} onWatch={onWatch} onNote={onNote} />
          </CurveViewProvider>
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
  return { onWatch, onNote, onSearch };
}

it('without a range there is no card', async () => {
  await show('', []);
  expect(screen.queryByRole('region')).toBeNull();
});

it('the card of a range names what changed, its episodes and the checkpoint before it', async () => {
  const { onWatch, onNote, onSearch } = await show('1000..2000', [
    metric('Policy entropy', { before: 1.2, inside: 0.02, score: -30 }),
    metric('Throughput', { score: 0.4 }),
    metric('Memory', { before: 426, inside: 900, score: 200, unit: 'MiB', of_machine: true }),
  ]);
  const card = screen.getByRole('region', { name: 'What else changed here?' });
  const rows = (table: HTMLElement) =>
    within(table)
      .getAllByRole('row')
      .slice(1)
      .map(({ textContent }) => textContent);
  const [own, ofMachine] = within(card).getAllByRole('table');
  expect(rows(own!)).toEqual(['Policy entropy1.20.02÷ 60']);
  expect(within(card).getByText('And 1 of the machine')).toBeTruthy();
  expect(rows(ofMachine!)).toEqual(['Memory, MiB426900× 2.1']);
  expect(card.textContent).toMatch(/These changed together; which caused which is not known\.$/);
  fireEvent.click(screen.getByRole('button', { name: /Watch the episode/ }));
  expect(onWatch).toHaveBeenCalledWith('E');
  expect(screen.getByRole('link', { name: 'Fork from here' }).getAttribute('href')).toContain('checkpoint=C');
  fireEvent.click(screen.getByRole('button', { name: 'Note this' }));
  expect(onNote).toHaveBeenCalledWith(1000);
  fireEvent.click(screen.getByRole('button', { name: 'Show the whole curve' }));
  expect(onSearch.mock.lastCall?.[0]).toMatchObject({ zoom: undefined });
});

it.each([
  ['1000..2000', 'agent steps 1,000 to 2,000, against as much before'],
  ['800..9000', 'agent steps 800 to 9,000, against the 800 before'],
  ['0..900', 'agent steps 0 to 900, against nothing before'],
])('the card of %s states how much it is compared with', async (zoom, words) => {
  await show(zoom, []);
  expect(screen.getByRole('region').textContent).toContain(words);
});

it('a calm range says that nothing changed by more than it varied', async () => {
  await show('1000..2000', [metric('Throughput', { score: 0.4 })]);
  expect(screen.getByText(/None of the 1 metric changed by more than it varied before/)).toBeTruthy();
  expect(screen.queryByText(/changed together/)).toBeNull();
});
