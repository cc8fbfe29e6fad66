import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Score } from '@/api/figures';
import type { Run } from '@/api/runs';
import { compareSearch } from '@/components/run/search';
import { differing, mostTelling, ScoreScatter } from './ScoreScatter';

const service = vi.hoisted(() => {
  const state = { xs: [] as unknown[], answers: true, queries: [] as URLSearchParams[] };
  globalThis.fetch = (request) => {
    state.queries.push(new URL((request as Request).url).searchParams);
    if (!state.answers) return new Promise(() => undefined);
    const figure = { data: [{ x: state.xs, y: state.xs.map(() => 1) }], layout: { title: { text: 't' } } };
    return Promise.resolve(Response.json(figure));
  };
  return state;
});

/** Replaces the drawing library, which needs a layout of the page. */
const drawing = vi.hoisted(() => ({
  react: vi.fn<(element: HTMLElement) => Promise<void>>(() => Promise.resolve()),
  purge: () => undefined,
}));
vi.mock('plotly.js-basic-dist-min', () => ({ default: drawing }));

const run = (id: string, rate: number | null, score: number | null): Run =>
  ({
    id,
    name: id,
    spec: { config: { learning_rate: rate } },
    score,
    best_return: 5,
    departures: {},
  }) as unknown as Run;

beforeEach(() => {
  service.xs = [0.1, 0.2];
  service.answers = true;
  drawing.react.mockClear();
});
afterEach(cleanup);

type PageProps = { runs: readonly Run[]; first: Score };

function Page({ runs, first }: PageProps) {
  const [score, setScore] = useState(first);
  return (
    <ScoreScatter
      runs={runs}
      setting="config.learning_rate"
      onSetting={() => undefined}
      score={score}
      onScore={setScore}
    />
  );
}

const show = (runs: readonly Run[], first: Score = 'score') =>
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <MantineProvider env="test">
        <Page runs={runs} first={first} />
      </MantineProvider>
    </QueryClientProvider>,
  );

const choose = (score: Score) =>
  fireEvent.change(screen.getByLabelText('Score to draw'), { target: { value: score } });

it('shows which runs are not drawn', async () => {
  service.xs = [0.1];
  show([run('A', 0.1, 3), run('B', 0.2, null), run('C', null, 4)]);
  await screen.findByText(
    '1 of 3 runs drawn: 1 without a score yet, 1 without a value of this hyperparameter.',
  );
  service.xs = [0.1, 0.2];
  choose('best_return');
  await screen.findByText('2 of 3 runs drawn: 1 without a value of this hyperparameter.');
});

it('draws again after a failure', async () => {
  drawing.react.mockRejectedValueOnce(new Error('no canvas'));
  show([run('A', 0.1, 3), run('B', 0.2, 4)]);
  fireEvent.click(await screen.findByRole('button', { name: 'Try again' }));
  await screen.findByRole('img', { name: /^Score of each run/ });
  // And a third time, once the figure has been fetched again.
  await waitFor(() => expect(drawing.react.mock.calls.length).toBeGreaterThan(1));
  expect(screen.queryByText('no canvas')).toBeNull();
});

it('draws again after a score that no run has', async () => {
  show([run('A', 0.1, null), run('B', 0.2, null)], 'best_return');
  await waitFor(() => expect(drawing.react).toHaveBeenCalledTimes(1));
  service.answers = false;
  choose('score');
  await screen.findByText('None of these runs has a score yet.');
  choose('best_return');
  await screen.findByRole('img', { name: /^Best return of each run/ });
  await waitFor(() => expect(drawing.react).toHaveBeenCalledTimes(2));
});

it('compareSearch keeps the drawn score', () => {
  expect(compareSearch({ drawn: 'best_return' }).drawn).toBe('best_return');
  expect(compareSearch({ drawn: 'other' }).drawn).toBeUndefined();
});

it('requests the styles of groups where the page draws groups', async () => {
  const runs = [run('A', 0.1, 3), run('B', 0.2, 4)];
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <ScoreScatter
          runs={runs}
          styles={{ group_style: ['0f3c:2'] }}
          grouped
          setting="config.learning_rate"
          onSetting={() => undefined}
          score="score"
          onScore={() => undefined}
        />
      </MantineProvider>
    </QueryClientProvider>,
  );
  await screen.findByRole('img', { name: /^Score of each run/ });
  const query = service.queries.at(-1);
  expect([query?.get('group_by'), query?.getAll('group_style')]).toEqual(['seed', ['0f3c:2']]);
});

it('draws first the setting that explains most, and none of bookkeeping', () => {
  const scored = (config: object, score: number): Run =>
    ({ spec: { config, seed: score }, score, best_return: null, departures: {} }) as unknown as Run;
  const runs = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
    scored({ beta: n % 2, n_e: n > 4 ? 8 : 4, evaluation_episodes: n > 4 ? 1 : 2 }, n > 4 ? 100 + n : n),
  );
  expect(mostTelling(runs, differing(runs), 'score')).toBe('config.n_e');
  expect(mostTelling(runs, ['config.evaluation_episodes', 'seed'], 'score')).toBe(
    'config.evaluation_episodes',
  );
  expect(mostTelling(runs, ['config.beta', 'config.n_e'], 'best_return')).toBe('config.beta');
});
