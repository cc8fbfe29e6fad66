import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { RunDetail } from '@/api/runs';
import { KeyFigures } from './KeyFigures';

afterEach(cleanup);

const RUN = {
  id: 'R',
  origin: 'external',
  environment: 'CartPole-v1',
  step_unit: 'agent_steps',
  score: 267.6,
  episodes: 812,
  return_metric: null,
  agent_steps: 10_000,
  wall_time_s: 100,
  time_left_s: 900,
  spec: { stop: { agent_steps: 100_000 } },
  created_at: '2026-01-01T00:00:00Z',
} as unknown as RunDetail;

function shown(rest: Partial<RunDetail> = {}): string {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, enabled: false } } });
  const { container } = render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <KeyFigures run={{ ...RUN, ...rest }} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return (container.querySelector('dl')?.textContent ?? '').replaceAll('\u00a0', ' ');
}

it.each<[Partial<RunDetail>, RegExp]>([
  [{}, /^Score, mean of 100 episodes267\.6/],
  [{ episodes: 1 }, /^Score, mean of 1 episode2/],
  [{ return_metric: 'eval/mean' }, /^Score267\.6/],
])('a score says what it is the mean of: %o', (run, text) => {
  expect(shown(run)).toMatch(text);
});

it('the time left is a range while the rate of the last minutes is not that of the training', () => {
  expect(shown()).toContain('Time leftabout 15 min');
  expect(shown({ time_left_s: 3600 })).toContain('Time left15 min to 1 h');
});
