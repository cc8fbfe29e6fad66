import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, it } from 'vitest';
import { type Comparison, comparisonQuery } from '@/api/comparisons';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { Statistics, type StatisticsView } from './Statistics';

afterEach(cleanup);

const runs = [{ id: 'R', state: 'finished' }] as unknown as Run[];

const scored = (
  score: Comparison['score'],
  protocol: string | null,
  value: number,
  external = false,
  repeated = false,
  several = false,
) => ({
  score,
  at: 'common',
  threshold: null,
  method: 'By order statistics',
  protocols: score === 'evaluation' ? ['noop_starts', 'noop_starts_5min'] : [],
  improvements: [],
  best: [],
  n_comparisons: 1,
  lengths: [],
  baselines: [],
  groups: (several ? ['g', 'h'] : ['g']).map((id) => ({
    id,
    name: 'PAAC on Pong',
    algorithm: 'paac',
    environment: 'ALE/Pong-v5',
    protocol,
    external,
    step_unit: external ? 'iterations' : 'agent_steps',
    at_agent_steps: 100,
    runs: [
      { run: 'R', seed: 0, score: value, counted: true, left_out: null },
      ...(repeated ? [{ run: 'S', seed: 0, score: value, counted: false, left_out: 'repeated' }] : []),
    ],
    n: 1,
    n_finished: 1,
    n_broken_off: 0,
    others: [],
    iqm: { value, low: null, high: null },
    median: { value, low: null, high: null },
    n_reached: 0,
  })),
});

type ShownProps = { view: StatisticsView; onView?: (view: StatisticsView) => void };

/** The statistics of a run, as a page that requests its comparison shows them. */
function Shown({ view, onView = () => undefined }: ShownProps) {
  const request = { runs: ['R'], ...view, training: false };
  const { data } = useQuery(comparisonQuery(request));
  return (
    <Statistics
      runs={runs}
      request={request}
      comparison={data}
      error={null}
      onRetry={() => undefined}
      styles={undefined}
      onStyle={() => undefined}
      view={view}
      onView={onView}
      onAdd={() => undefined}
      onLeaveOut={() => undefined}
    />
  );
}

function show(first: StatisticsView, external = false, repeated = false, several = false): void {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  const asked = (score: string, protocol?: string) =>
    keys.comparison(['R'], score, 'common', undefined, protocol, undefined, undefined);
  client.setQueryData(keys.palette(), { light: ['#000'], dark: ['#fff'], names: ['black'], symbols: [''] });
  client.setQueryData(asked('training'), scored('training', null, 3, external, repeated, several));
  client.setQueryData(asked('evaluation'), scored('evaluation', 'noop_starts', 7));
  client.setQueryData(asked('evaluation', 'noop_starts_5min'), scored('evaluation', 'noop_starts_5min', 5));
  client.setQueryData(asked('evaluation', 'plain'), scored('evaluation', 'plain', 0));
  const Page = () => {
    const [view, setView] = useState(first);
    return <Shown view={view} onView={setView} />;
  };
  render(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <Page />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

const training: StatisticsView = {
  score: 'training',
  at: 'common',
  threshold: undefined,
  protocol: undefined,
  baseline: undefined,
  pairs: undefined,
};
const cells = () => screen.getAllByRole('cell').map((cell) => cell.textContent);
const PROTOCOL = { name: 'Evaluation protocol' };
const select = () => screen.queryByRole<HTMLSelectElement>('combobox', PROTOCOL);
const choose = (value: string) =>
  fireEvent.change(screen.getByRole('combobox', PROTOCOL), { target: { value } });

it('Statistics compares evaluations of the chosen protocol, and names it beside each score', () => {
  show(training);
  expect(select()).toBeNull();
  expect(cells()).not.toContain('no-op starts');
  fireEvent.click(screen.getByRole('radio', { name: 'Latest evaluation' }));
  expect(cells()).toContain('no-op starts');
  expect([...(select()?.options ?? [])].map(({ text }) => text)).toEqual([
    'Each config’s own protocol',
    'no-op starts',
    'no-op starts, 5 min',
  ]);
  choose('noop_starts_5min');
  expect(cells()).toContain('no-op starts, 5 min');
  expect(cells()).not.toContain('no-op starts');
  choose('');
  expect(cells()).toContain('no-op starts');
});

it('Statistics offers the protocol of the address although no run was evaluated under it', () => {
  show({ ...training, score: 'evaluation', protocol: 'plain' });
  expect(select()?.value).toBe('plain');
});

it('shows how many seeds a comparison and a verdict need', () => {
  show(training, false, false, true);
  expect(screen.getByText(/with at least two seeds each/).textContent).toMatch(
    /at least two seeds each; a verdict needs at least four\.$/,
  );
});

it('compares each config with the best one where there are many pairs, and all on request', () => {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const [group] = scored('training', null, 0).groups;
  const estimate = (value: number) => ({ value, low: null, high: null });
  const pairs = ids.flatMap((a, at) => ids.slice(at + 1).map((b) => ({ a, b })));
  const comparison = {
    ...scored('training', null, 0),
    baselines: ['b'],
    best: [{ environment: 'ALE/Pong-v5', group: 'c' }],
    groups: ids.map((id) => ({ ...group, id, name: id })),
    improvements: pairs.map((pair) => ({
      ...pair,
      probability: estimate(0.5),
      difference: estimate(1),
      p_adjusted: 0.5,
      better: null,
      seeds_to_differ: null,
    })),
  };
  client.setQueryData(keys.palette(), { light: ['#000'], dark: ['#fff'], names: ['black'], symbols: [''] });
  client.setQueryData(
    keys.comparison(['R'], 'training', 'common', undefined, undefined, undefined, undefined),
    comparison,
  );
  render(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <Shown view={training} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  const scores = within(screen.getByRole('region', { name: 'Scores by config' })).getAllByRole('row');
  const texts = scores.slice(1).map(({ lastChild: p }) => [p?.previousSibling?.textContent, p?.textContent]);
  expect(texts.slice(0, 3)).toEqual([
    ['+1.00', 'p = 0.50'],
    ['baseline', ''],
    ['−1.00', 'p = 0.50'],
  ]);
  const rows = () =>
    within(screen.getByRole('region', { name: 'Pairwise comparison' }))
      .getAllByRole('row')
      .slice(1);
  expect(rows()).toHaveLength(5);
  for (const row of rows()) expect(row.textContent.slice(0, 2)).toContain('c');
  fireEvent.click(screen.getByRole('button', { name: 'Show all 15 pairs' }));
  expect(rows()).toHaveLength(15);
});

it('shows that external runs are compared on training returns only', () => {
  show(training);
  expect(screen.queryByRole('note')).toBeNull();
  cleanup();
  show(training, true);
  expect(screen.getByRole('note').textContent).toContain('compared by training return only');
  expect(screen.getByRole('columnheader', { name: 'At iterations' })).toBeTruthy();
});

it('shows that a run is not counted if it is a fork, or repeats another', () => {
  show(training, false, true);
  expect(screen.getByRole('note').textContent).toBe(
    '1 run not counted: a run and its forks are one sample, and so are runs with the same config and seed if the method is deterministic.',
  );
  expect(cells()[1]).toBe('1');
});

it('names what is counted up to the threshold, beside each group where groups differ in it', () => {
  const [group] = scored('training', null, 0).groups;
  const reached = (id: string, step_unit: string) => ({
    ...group,
    ...{ id, step_unit, n_reached: 1 },
    agent_steps_to_threshold: { value: 60, low: null, high: null },
  });
  const show = (...groups: object[]) => {
    const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
    client.setQueryData(keys.palette(), { light: ['#000'], dark: ['#fff'], names: ['black'], symbols: [''] });
    client.setQueryData(keys.comparison(['R'], 'training', 'common', 5, undefined, undefined, undefined), {
      ...scored('training', null, 0),
      threshold: 5,
      groups,
    });
    render(
      <MantineProvider>
        <QueryClientProvider client={client}>
          <Shown view={{ ...training, threshold: 5 }} />
        </QueryClientProvider>
      </MantineProvider>,
    );
  };
  show(reached('g', 'iterations'));
  expect(screen.getByRole('columnheader', { name: 'Iterations to 5.00 [95 % CI]' })).toBeTruthy();
  expect(cells()).toContain('60');
  cleanup();
  show(reached('g', 'iterations'), reached('h', 'agent_steps'));
  const header = 'Agent steps or iterations to 5.00 [95 % CI]';
  expect(screen.getByRole('columnheader', { name: header })).toBeTruthy();
  expect(cells()).toEqual(expect.arrayContaining(['60 iterations', '60 agent steps']));
});
