import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { checkpointsQuery, evaluationsQuery, type Checkpoint, type Evaluation } from '@/api/runResources';
import CheckpointsTab from './CheckpointsTab';
import { EvaluationsTab } from './EvaluationsTab';

const CHECKPOINT: Checkpoint = {
  id: 'C',
  run_id: 'R',
  attempt: 0,
  recorded_at: '2026-01-31T10:00:00Z',
  agent_steps: 100_000,
  frames: 100_000,
  updates: 0,
  episodes: 12,
  wall_time_s: 812.5,
  file: 's000000100000-U.zip',
  sha256: 'ab',
  size_bytes: 2048,
  score: 20.5,
  removed: false,
  superseded: false,
};

afterEach(cleanup);

const RUN = { id: 'R', origin: 'external' } as Run;

function show(items: Checkpoint[], tab = <CheckpointsTab run={RUN} />, evaluations: Evaluation[] = []) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role: 'operator' });
  client.setQueryData(checkpointsQuery('R').queryKey, {
    pages: [{ items, next_cursor: null }],
    pageParams: [null],
  });
  client.setQueryData(evaluationsQuery('R').queryKey, evaluations);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>{tab}</MantineProvider>
    </QueryClientProvider>,
  );
}

it('offers the files of an external run for download only, with the reason', () => {
  show([CHECKPOINT]);
  const link = screen.getByRole('link', { name: CHECKPOINT.file });
  expect(link.getAttribute('href')).toBe('/api/v1/checkpoints/C/file');
  expect(screen.getByRole('columnheader', { name: 'Score' })).toBeTruthy();
  expect(screen.getByText('20.5')).toBeTruthy();
  expect(screen.getByText(/cannot be evaluated, resumed or forked from them/)).toBeTruthy();
  expect(screen.queryByRole('button', { name: /Evaluate/ })).toBeNull();
  expect(screen.queryByText('Fork from here')).toBeNull();
});

it('writes agent steps with all digits, so that a column has one unit', () => {
  show([CHECKPOINT, { ...CHECKPOINT, id: 'D', agent_steps: 880, file: 's000000000880-U.zip' }]);
  expect(screen.getByText('100,000')).toBeTruthy();
  expect(screen.getByText('880')).toBeTruthy();
});

it('shows that the script of an external run has sent no file yet', () => {
  show([]);
  expect(screen.getByText(/script has sent no file/)).toBeTruthy();
});

it('offers no evaluation of the files of an external run', () => {
  show([CHECKPOINT], <EvaluationsTab run={RUN} />);
  expect(screen.getByRole<HTMLButtonElement>('button', { name: /Evaluate/ }).disabled).toBe(true);
  expect(screen.getByText(/files of its own script, which cannot be loaded here/)).toBeTruthy();
});

it('says how many episodes of an evaluation ended at the limit of its protocol', () => {
  const evaluation: Evaluation = {
    id: 'E',
    run_id: 'R',
    attempt: 1,
    requested_at: '2026-01-31T10:00:00Z',
    protocol: 'noop_starts_5min',
    n_episodes: 3,
    seed: 0,
    agent_steps: 1000,
    frames: 4000,
    wall_time_s: 1,
    checkpoint: 'a1-s000000001000.pt',
    returns: [0, 0, 1],
    lengths_frames: [17_990, 17_980, 900],
    max_frames: 18_000,
    n_at_max_frames: 2,
    mean_return: 1 / 3,
    human_normalised_pct: null,
    human_normalised_by: [],
    superseded: false,
    state: 'done',
    error: null,
  };
  show([], <EvaluationsTab run={RUN} />, [evaluation, { ...evaluation, id: 'F', n_at_max_frames: 0 }]);
  expect(screen.getAllByText(/ended at the limit/)).toHaveLength(1);
  expect(screen.getByText('2 of 3 ended at the limit of 18,000 frames')).toBeTruthy();
});
