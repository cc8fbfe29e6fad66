import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkpointsQuery, episodesQuery, symptomsQuery } from '@/api/runResources';
import { queueQuery, runQuery, type RunDetail } from '@/api/runs';
import { Notice } from './Notice';
import { keptText, lastRestart } from './restarts';

// The time stands still: on a slow machine it would not be "just now".
beforeEach(() => void vi.setSystemTime(new Date('2026-11-22T08:00:00Z')));
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const attempt = (number: number, outcome: string | null, resumed = 0): RunDetail['attempts'][number] => ({
  number,
  host: 'a',
  claimed_at: new Date().toISOString(),
  ended_at: outcome === null ? null : new Date().toISOString(),
  outcome,
  resumed_from_agent_steps: resumed,
  provenance: null,
});

const KILLED =
  'queued: engine killed (SIGKILL, possibly out of memory): to resume from its latest checkpoint';

describe('lastRestart', () => {
  it('finds the last attempt that ended without a request', () => {
    const attempts = [
      attempt(1, KILLED),
      attempt(2, 'queued: its worker on a is shutting down'),
      attempt(3, KILLED, 500),
      attempt(4, null, 1000),
    ];
    expect(lastRestart({ attempts })).toMatchObject({
      attempt: { number: 3 },
      cause: 'engine killed (SIGKILL, possibly out of memory)',
      count: 2,
      resumedFrom: 1000,
    });
  });

  it('names the cause without what happens next', () => {
    const unread = 'queued: its engine could not read the checkpoint to resume from';
    for (const next of ['to resume from an intact one', 'it will resume from an intact one']) {
      expect(lastRestart({ attempts: [attempt(1, `${unread}: ${next}`)] })?.cause).toBe(
        'its engine could not read the checkpoint to resume from',
      );
    }
  });

  it('finds nothing after a stop, a shutdown or a first attempt', () => {
    const attempts = [
      attempt(1, 'stopped: stop requested'),
      attempt(2, 'queued: its worker on a is shutting down'),
    ];
    expect(lastRestart({ attempts: [...attempts, attempt(3, null)] })).toBeNull();
  });

  it('names a cause for attempts that recorded none', () =>
    expect(
      lastRestart({ attempts: [attempt(1, 'queued: to resume from its newest checkpoint')] }),
    ).toMatchObject({
      cause: 'its host no longer responded',
      resumedFrom: null,
    }));
});

it.each([
  [{ curves: false, episodes: false, checkpoints: false }, 'It failed before it recorded anything.'],
  [{ curves: true, episodes: false, checkpoints: false }, 'Its curves are kept.'],
  [{ curves: true, episodes: true, checkpoints: true }, 'Its curves, episodes and checkpoints are kept.'],
])('keptText names only what exists: %j', (kept, text) => expect(keptText(kept)).toBe(text));

const run = (changes: Partial<RunDetail>): RunDetail =>
  ({
    id: 'R',
    state: 'queued',
    queue: 'cpu',
    priority: 0,
    attempts: [],
    processes: [],
    agent_steps: 0,
    ...changes,
  }) as RunDetail;

async function show(shown: RunDetail, fill: (client: QueryClient) => void = () => undefined) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  fill(client);
  const rootRoute = createRootRoute({ component: () => <Notice run={shown} /> });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
}

const text = (): string => document.body.textContent.replace(/\s+/g, ' ');

it('a queued run shows its place, who is ahead and the expected start', async () => {
  await show(run({}), (client) =>
    client.setQueryData(queueQuery('R').queryKey, {
      position: 8,
      waiting: 9,
      ahead: [{ id: 'A', name: 'first', priority: 2, queue: 'cpu', wanted_host: null, created_at: '' }],
      reason: 'all slots are in use',
      expected_start_at: new Date(Date.now() + 3_700_000).toISOString(),
      unknown_start: null,
    }),
  );
  expect(text()).toContain('Number 8 of 9 in queue cpu: all slots are in use.');
  expect(text()).toContain('Ahead: first (priority 2) and 6 more runs.');
  expect(text()).toContain('Expected to start in about 1 h 01 min.');
});

it.each([
  [12, ''],
  [40, 'Its script has sent nothing for 40 s; it sends something every 15 s.'],
])('a run whose script was silent for %s s says so', async (silent_s, words) => {
  const quiet = run({ state: 'running', origin: 'external', silent_s, transitions: [] });
  await show(quiet, (client) => client.setQueryData(runQuery('R').queryKey, quiet));
  expect(text()).toMatch(words === '' ? /^$/ : words);
});

it('a failed run claims only what it has', async () => {
  const failed = run({ state: 'failed', state_reason: 'engine killed', agent_steps: 100 });
  await show(failed, (client) => {
    client.setQueryData(checkpointsQuery('R').queryKey, {
      pages: [{ items: [], next_cursor: null }],
      pageParams: [null],
    });
    client.setQueryData(episodesQuery('R', '-episode_return').queryKey, {
      pages: [{ items: [], next_cursor: null }],
      pageParams: [null],
    });
  });
  expect(text()).toBe(
    'Failed: engine killedIts curves are kept. There is no checkpoint: Resume starts over.',
  );
});

it('what its program printed is shown as a terminal would have left it', async () => {
  await show(
    run({ state: 'failed', state_reason: 'x', error: '\x1b[31mError\x1b[0m: bad\n10%\r20% \u202e' }),
  );
  expect(await screen.findByText(/Error: bad/)).toHaveProperty('textContent', 'Error: bad\n20% [U+202E]');
});

it('a starting run shows its phase, and that it was restarted', async () => {
  const attempts = [attempt(1, KILLED), attempt(2, null, 1000)];
  await show(run({ state: 'starting', host: 'a', state_reason: 'restoring a1-s1000.pt', attempts }));
  expect(text()).toContain('Starting on a: restoring a1-s1000.pt');
  expect(text()).toContain('Restarted once. Attempt 1 on a ended just now: engine killed (SIGKILL');
  expect(text()).toContain('Resumed from agent step 1,000.');
  expect(screen.getByRole('link', { name: 'Log' })).toBeTruthy();
});

it('what is wrong with a run is said with the step, what helps, and the source', async () => {
  const client = (queries: QueryClient) =>
    queries.setQueryData(symptomsQuery('R').queryKey, {
      items: [
        {
          rule: 'entropy_collapse',
          title: 'Entropy collapse',
          since_agent_steps: 12_000,
          text: 'The policy takes nearly always the same action.',
          advice: 'Raise the entropy weight.',
          settings: ['beta'],
          source: 'Mnih et al. 2016',
        },
      ],
    });
  await show(run({ state: 'running', agent_steps: 20_000 }), client);
  await screen.findByText('Entropy collapse');
  expect(text()).toContain(
    'Entropy collapse since agent step 12.0k. The policy takes nearly always the same action. ' +
      'Raise the entropy weight. Settings: beta. (Mnih et al. 2016)',
  );
});
