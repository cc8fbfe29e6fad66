import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Comparison } from '@/api/comparisons';
import { VerdictPanel } from './Verdict';

const requests = vi.hoisted(() => {
  const requests: Request[] = [];
  globalThis.fetch = (request) => {
    requests.push(request as Request);
    return new Promise(() => undefined);
  };
  return requests;
});

afterEach(() => {
  cleanup();
  requests.length = 0;
});

const group = (id: string, n: number) => ({ id, name: `lr ${id}`, n, runs: [], iqm: { value: n } });
const PAIR = {
  a: 'a',
  b: 'b',
  p_adjusted: 0.33,
  difference: { value: 7, low: null, high: null },
  better: null,
};
const BEST = { environment: 'Catch-v0', group: 'a', rival: 'b', seeds: 4, are_fewest: true };
const missing = (n: number, run: string | null, n_queued = 0) => ({ group: '', n, run, n_queued });

function show(best: object, pair: object = {}): void {
  const comparison = {
    groups: [group('a', 2), group('b', 2)],
    baselines: ['b'],
    improvements: [{ ...PAIR, ...pair }],
    best: [{ ...BEST, missing: [missing(2, 'R'), missing(2, 'S')], ...best }],
  } as unknown as Comparison;
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <VerdictPanel comparison={comparison} nHidden={0} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

const text = (): string => screen.getByRole('region', { name: 'Verdict' }).textContent;

it('an undecided verdict queues the seeds that could decide', async () => {
  show({});
  expect(text()).toContain('lr a is ahead of the baseline lr b+7.00, p = 0.33, 2 + 2 seeds');
  expect(text()).toContain('2 more seeds each could decide; fewer cannot.');
  fireEvent.click(screen.getByRole('button', { name: 'Queue 2 seeds each' }));
  await waitFor(() => expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(1));
  const sent = requests.find(({ method }) => method === 'POST');
  expect(sent && new URL(sent.url).pathname).toBe('/api/v1/comparisons/seeds');
  expect(await sent?.json()).toEqual({
    items: [
      { run: 'R', n: 2 },
      { run: 'S', n: 2 },
    ],
  });
});

it('a verdict offers no seeds when it is decided, when they are queued, or are not known', () => {
  show({ seeds: null, missing: [] }, { better: 'a', p_adjusted: 0.01 });
  expect(text()).toContain('lr a is better than the baseline lr b');
  cleanup();
  // By the test the other one is better than the one with the higher score.
  show({}, { better: 'b', p_adjusted: 0.01 });
  expect(text()).toContain('lr a is ahead of the baseline lr b');
  cleanup();
  show({ missing: [missing(0, 'R', 2), missing(0, 'S', 2)] });
  expect(text()).toContain('4 seeds queued or training.');
  cleanup();
  show({ seeds: null, missing: [] });
  expect(text()).toContain('How many seeds would decide is not known');
  cleanup();
  show({ missing: [missing(2, null), missing(2, 'S')] });
  expect(text()).toContain('start them by yourself');
  expect(screen.queryByRole('button')).toBeNull();
});

it('a verdict is not decided by a test that finds the other config better', () => {
  show({ seeds: null, missing: [] }, { better: 'b', p_adjusted: 0.01 });
  expect(text()).toContain('lr a is ahead of the baseline lr b');
  expect(text()).toContain('Not decided: the test finds lr b better.');
  expect(text()).not.toContain('How many seeds');
});
