import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { RunDetail } from '@/api/runs';
import type { Chart, Curve } from '@/api/series';
import { GorilaFigure, sortedBySource, latestBySource, rangeOf } from './GorilaFigure';

const service = vi.hoisted(() => {
  const state = { answer: null as object | null };
  globalThis.fetch = () =>
    Promise.resolve(
      Response.json(state.answer ?? { title: 'Internal Server Error' }, { status: state.answer ? 200 : 500 }),
    );
  return state;
});

afterEach(cleanup);

const curve = (metric: string, source: string, last: Curve['last']): Curve =>
  ({ metric, source, last }) as unknown as Curve;

const chart = {
  series: [
    curve('gorila/episodes', 'actor 10', [3, 7]),
    curve('gorila/episodes', 'actor 9', [4, 5]),
    curve('gorila/episodes', 'actor 1', []),
    curve('loss/td', '', [0.5]),
    curve('loss/td', 'learner 0', [0.5, 'Infinity']),
  ],
} as unknown as Chart;

it('latestBySource returns the last value of each source that has one', () => {
  expect([...latestBySource(chart, 'gorila/episodes')]).toEqual([
    ['actor 10', 7],
    ['actor 9', 5],
  ]);
  expect([...latestBySource(chart, 'loss/td')]).toEqual([['', 0.5]]);
  expect(latestBySource(undefined, 'loss/td').size).toBe(0);
});

it('sortedBySource sorts by number, and rangeOf returns the smallest and the largest value', () => {
  const episodes = latestBySource(chart, 'gorila/episodes');
  expect(sortedBySource(episodes).map(([source]) => source)).toEqual(['actor 9', 'actor 10']);
  expect(rangeOf(episodes)).toEqual([5, 7]);
  expect(rangeOf(new Map())).toBeUndefined();
});

it('GorilaFigure keeps the latest values beside the error of a failed refetch', async () => {
  service.answer = chart;
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const run = {
    id: 'R',
    spec: { config: { n_actors: 2, n_learners: 1, n_shards: 1 } },
  } as unknown as RunDetail;
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <GorilaFigure run={run} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByText('5 to 7');
  service.answer = null;
  await act(() => client.refetchQueries());
  expect((await screen.findByRole('alert')).textContent).toContain('Internal server error');
  expect(screen.getByText('5 to 7')).toBeTruthy();
});
