import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { api } from './client';
import { keys } from './keys';
import { isAffected, isRefused, SLOW_MS, startLiveUpdates } from './liveUpdates';
import { ApiProblem } from './problem';
import type { RunList, RunsQuery } from './runs';

vi.hoisted(() => {
  globalThis.fetch = () => Promise.resolve(Response.json({}));
});

afterEach(() => vi.unstubAllGlobals());

const A = '01K0000000000000000000000A';
const B = '01K0000000000000000000000B';

describe('isAffected', () => {
  const points = { run: A, revision: 3, state: 'running', changed: ['series/loss'] };

  it('refetches a run and its charts of changed metrics alone after new points', () => {
    const resources = [
      'episodes',
      'evaluations',
      'checkpoints',
      'log',
      'series-names',
      'panels',
      'settings',
      'step-notes',
    ];
    expect(isAffected(keys.run(A), points)).toBe(true);
    expect(isAffected(keys.series([B, A], ['eval/plain/mean_return', 'loss/value']), points)).toBe(true);
    expect(isAffected(keys.series([A], ['rollout/episode_return']), points)).toBe(false);
    expect(isAffected(keys.series([B], ['loss/value']), points)).toBe(false);
    expect(isAffected(keys.run(B), points)).toBe(false);
    for (const resource of resources)
      expect(isAffected(keys.runResource(A, resource), points), resource).toBe(false);
  });

  it('refetches the resource that an event names', () => {
    const episode = { run: A, revision: 4, state: 'running', changed: ['episodes', 'metrics'] };
    expect(isAffected(keys.runResource(A, 'episodes', '-agent_steps'), episode)).toBe(true);
    expect(isAffected(keys.runResource(A, 'series-names'), episode)).toBe(true);
    expect(isAffected(keys.runResource(A, 'evaluations'), episode)).toBe(false);
  });

  it('refetches everything of a run after an event that names nothing', () => {
    const transition = { run: A, revision: 5, state: 'stopped' };
    expect(isAffected(keys.runResource(A, 'log', ''), transition)).toBe(true);
    expect(isAffected(keys.runResource(A, 'video', 'x', 0), transition)).toBe(true);
    expect(isAffected(keys.series([A], ['loss/value']), transition)).toBe(true);
    expect(isAffected(keys.hosts(), transition)).toBe(false);
  });

  it('refetches what a job of its kind changes, but not the run', () => {
    const rendering = { job: B, kind: 'video', run: A, state: 'done' };
    expect(isAffected(keys.run(A), rendering)).toBe(false);
    expect(isAffected(keys.runResource(A, 'episodes', '-agent_steps'), rendering)).toBe(true);
    expect(isAffected(keys.runResource(A, 'evaluations'), rendering)).toBe(false);
    expect(isAffected(keys.series([A], ['loss/value']), rendering)).toBe(false);
    const evaluation = { ...rendering, kind: 'evaluation' };
    expect(isAffected(keys.runResource(A, 'evaluations'), evaluation)).toBe(true);
    expect(isAffected(keys.runResource(A, 'marks'), evaluation)).toBe(true);
    expect(isAffected(keys.runResource(A, 'episodes', '-agent_steps'), evaluation)).toBe(false);
  });

  it('refetches a thumbnail when its own job has ended, and nothing else', () => {
    const rendering = { job: B, kind: 'thumbnail', run: A, state: 'done' };
    const key = keys.thumbnail('an episode', 0);
    expect(isAffected(key, rendering, { job: B })).toBe(true);
    expect(isAffected(key, { ...rendering, state: 'failed' }, { job: B })).toBe(true);
    expect(isAffected(key, { ...rendering, state: 'running' }, { job: B })).toBe(false);
    expect(isAffected(key, rendering, { job: A })).toBe(false);
    expect(isAffected(key, rendering, { url: 'data:' })).toBe(false);
    expect(isAffected(key, { run: A, state: 'stopped' }, undefined)).toBe(false);
    expect(isAffected(keys.runResource(A, 'episodes', 'spread', 9), rendering)).toBe(false);
  });

  it('refetches a sweep and the list of sweeps after events of sweeps', () => {
    const sweep = { sweep: A, revision: 2, state: 'running' };
    expect(isAffected(keys.sweeps(), sweep)).toBe(true);
    expect(isAffected(keys.sweep(A), sweep)).toBe(true);
    expect(isAffected(keys.sweep(B), sweep)).toBe(false);
    expect(isAffected(keys.run(A), sweep)).toBe(false);
    expect(isAffected(keys.hosts(), sweep)).toBe(false);
  });

  it('refetches a study after changes of state of runs, also when it sends no more events itself', () => {
    const ended = { run: A, revision: 3, state: 'stopped' };
    expect(isAffected(keys.study('S'), ended)).toBe(true);
    expect(isAffected(keys.study('S', 'cells'), ended)).toBe(true);
    expect(isAffected(keys.study('S'), { ...ended, changed: ['series/loss'] })).toBe(false);
    expect(isAffected(keys.study('S'), { ...ended, job: B, kind: 'video' })).toBe(false);
  });

  it('refetches a sweep after changes of state of its own runs alone', () => {
    const detail = { configurations: [{ runs: [{ run: null }, { run: A }] }] };
    const finished = { run: A, revision: 9, state: 'finished' };
    const key = keys.sweep('01K0000000000000000000000S');
    expect(isAffected(key, finished, detail)).toBe(true);
    expect(isAffected(key, { ...finished, run: B }, detail)).toBe(false);
    expect(isAffected(key, { ...points, state: 'running' }, detail)).toBe(false);
    expect(isAffected(key, { job: B, kind: 'video', run: A, state: 'done' }, detail)).toBe(false);
    expect(isAffected(key, finished, undefined)).toBe(false);
    expect(isAffected(keys.sweeps(), finished)).toBe(false);
  });

  it('refetches the metrics that runs have when one of them has a new metric, and at its end', () => {
    const key = keys.metrics([B, A]);
    expect(isAffected(key, { ...points, changed: ['metrics', 'series/loss'] })).toBe(true);
    expect(isAffected(key, { run: A, revision: 5, state: 'stopped' })).toBe(true);
    expect(isAffected(key, points)).toBe(false);
    expect(isAffected(keys.metrics([B]), { ...points, changed: ['metrics'] })).toBe(false);
  });

  it('refetches a comparison of evaluations after each of them, and any at the end of a run', () => {
    const evaluations = keys.comparison([B, A], 'evaluation', 'common', undefined, undefined);
    const training = keys.comparison([B, A], 'training', 'common', undefined, undefined);
    const evaluated = { ...points, changed: ['evaluations'] };
    expect(isAffected(evaluations, evaluated)).toBe(true);
    expect(isAffected(evaluations, { job: B, kind: 'evaluation', run: A, state: 'done' })).toBe(true);
    expect(isAffected(evaluations, { ...evaluated, run: 'another' })).toBe(false);
    for (const key of [evaluations, training]) {
      expect(isAffected(key, points)).toBe(false);
      expect(isAffected(key, { run: A, revision: 5, state: 'stopped' })).toBe(true);
    }
    expect(isAffected(training, evaluated)).toBe(false);
  });

  it('refetches hosts after events of hosts alone', () => {
    expect(isAffected(keys.hosts(), { host: 'here' })).toBe(true);
    expect(isAffected(keys.run(A), { host: 'here' })).toBe(false);
    // A run's page shows a silent host only: no heartbeat is of interest to it.
    expect(isAffected(keys.hostSilence(), { host: 'here' })).toBe(false);
  });
});

it('a refused query is not sent again, one that failed otherwise is', () => {
  const query = (error: unknown) => ({ state: { error } }) as Parameters<typeof isRefused>[0];
  expect(isRefused(query(new ApiProblem(422, 'Some fields are invalid', '')))).toBe(true);
  expect(isRefused(query(new ApiProblem(500, 'Internal error', '')))).toBe(false);
  expect(isRefused(query(null))).toBe(false);
});

it('queries are fetched without a network where the service answers all the same', async () => {
  const source = Object.assign(new EventTarget(), { close: () => undefined });
  vi.stubGlobal('EventSource', function EventSource() {
    return source;
  });
  vi.stubGlobal(
    'BroadcastChannel',
    class extends EventTarget {
      postMessage = vi.fn();
      close = vi.fn();
    },
  );
  const client = new QueryClient();
  client.mount();
  const stop = startLiveUpdates(client);
  source.dispatchEvent(new MessageEvent('resync', { data: '{}' }));
  dispatchEvent(new Event('offline'));
  const fetched = client.query({ queryKey: ['page'], queryFn: () => 'answer' });
  expect(client.getQueryState(['page'])?.fetchStatus).toBe('paused');
  source.dispatchEvent(new Event('heartbeat'));
  expect(await fetched).toBe('answer');
  stop();
  client.unmount();
});

describe('startLiveUpdates', () => {
  const source = Object.assign(new EventTarget(), { close: () => undefined });
  const send = (event: object): void => {
    (source as unknown as { onmessage: (message: object) => void }).onmessage({
      data: JSON.stringify(event),
    });
  };
  const routine = (...changed: string[]) => ({ run: A, revision: 1, state: 'running', changed });

  /** A page that shows a query of each key; the numbers of their requests. */
  const watching = async (...queryKeys: readonly (readonly unknown[])[]) =>
    (await watchedClient(...queryKeys)).requests;

  async function watchedClient(...queryKeys: readonly (readonly unknown[])[]) {
    vi.stubGlobal('EventSource', function EventSource() {
      return source;
    });
    vi.stubGlobal(
      'BroadcastChannel',
      class extends EventTarget {
        postMessage = vi.fn();
        close = vi.fn();
      },
    );
    const client = new QueryClient();
    const requests = queryKeys.map(() => 0);
    const stops = queryKeys.map((queryKey, at) =>
      new QueryObserver(client, {
        queryKey,
        queryFn: () => {
          requests[at] = (requests[at] ?? 0) + 1;
          return [requests[at]];
        },
      }).subscribe(() => undefined),
    );
    stops.push(startLiveUpdates(client));
    await vi.advanceTimersByTimeAsync(0);
    onTestFinished(() => {
      for (const stop of stops) stop();
      vi.useRealTimers();
    });
    return { client, requests };
  }

  beforeEach(() => vi.useFakeTimers());

  const HOUR_MS = 3_600_000;
  const resync = (data: { quiet_s?: number }): boolean =>
    source.dispatchEvent(new MessageEvent('resync', { data: JSON.stringify(data) }));

  it('fetches nothing twice where nothing has changed since the page was requested', async () => {
    const requests = await watching(keys.hosts(), keys.run(A));
    resync({ quiet_s: HOUR_MS / 1000 });
    await vi.advanceTimersByTimeAsync(0);
    expect(requests).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(1000);
    resync({ quiet_s: 0.5 });
    await vi.advanceTimersByTimeAsync(0);
    expect(requests).toEqual([2, 2]);
    resync({});
    await vi.advanceTimersByTimeAsync(0);
    expect(requests).toEqual([3, 3]);
  });

  it('refetches a comparison and its metrics after events were missed', async () => {
    const requests = await watching(keys.comparison([A, B], 'training'), keys.metrics([A, B]));
    resync({});
    await vi.advanceTimersByTimeAsync(0);
    expect(requests).toEqual([2, 2]);
  });

  it('refetches lists after a change of state, whatever else of runs is shown', async () => {
    const requests = await watching([...keys.allRuns(), 'branch-policies', 'Catch-v0'], keys.runs({}));
    send({ run: B, revision: 2, state: 'finished' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2, 2]);
  });

  it('refetches lists later, after changes of single runs, which may belong to other lists by then', async () => {
    const requests = await watching(keys.runs({}));
    send({ run: A, revision: 2, state: 'finished' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2]);
    send({ run: A, revision: 3, state: 'finished' }); // archived, for example
    await vi.advanceTimersByTimeAsync(10_000);
    expect(requests).toEqual([2]);
    await vi.advanceTimersByTimeAsync(5000);
    expect(requests).toEqual([3]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(requests).toEqual([3]);
  });

  it('a list scrolled far is not refetched after a change of state, its changed runs are', async () => {
    const rows = (state: string) => (id: string) => ({ id, state });
    const page = (...ids: string[]) => ({ items: ids.map(rows('running')), total: 12, next_cursor: null });
    vi.spyOn(api, 'GET').mockImplementation(((_: string, { params }: { params: { query: RunsQuery } }) =>
      Promise.resolve({
        data: { items: (params.query.id ?? []).map(rows('finished')) },
        response: Response.json({}),
      })) as never);
    onTestFinished(() => {
      vi.restoreAllMocks();
    });
    const { client, requests } = await watchedClient(keys.runs({}));
    const others = Array.from({ length: 5 }, (_, k) => page(`other ${k}`));
    client.setQueryData(keys.runs({}), { pages: [...others, page(A, B)], pageParams: [null] });
    send({ run: B, revision: 2, state: 'finished' });
    send({ run: 'a run of no list', revision: 3, state: 'finished' });
    await vi.advanceTimersByTimeAsync(1000);
    const list = client.getQueryData<RunList>(keys.runs({}));
    expect(list?.pages.flatMap(({ items }) => items).at(-1)).toEqual({ id: B, state: 'finished' });
    expect(list?.pages.flatMap(({ items }) => items).at(-2)).toEqual({ id: A, state: 'running' });
    expect(requests).toEqual([1]);
    expect(api.GET).toHaveBeenCalledTimes(1);
  });

  it('fetches again what failed before the stream began', async () => {
    vi.stubGlobal('EventSource', function EventSource() {
      return source;
    });
    const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
    const queryFn = vi.fn().mockRejectedValueOnce(new TypeError('Failed to fetch')).mockResolvedValue([]);
    const stops = [
      new QueryObserver(client, { queryKey: keys.hosts(), queryFn }).subscribe(() => undefined),
      startLiveUpdates(client),
    ];
    onTestFinished(() => {
      for (const stop of stops) stop();
    });
    await vi.advanceTimersByTimeAsync(0);
    resync({ quiet_s: HOUR_MS / 1000 });
    await vi.advanceTimersByTimeAsync(0);
    expect(queryFn).toHaveBeenCalledTimes(2);
  });

  it.each([
    ['whose machine slept', 0, 2 * HOUR_MS],
    ['whose clock was set back', 2 * HOUR_MS, -2 * HOUR_MS],
  ])('refetches a page %s while something changed', async (_, elapsedMs, clockMs) => {
    const requests = await watching(keys.hosts());
    vi.spyOn(performance, 'now').mockReturnValue(elapsedMs);
    onTestFinished(() => {
      vi.restoreAllMocks();
    });
    vi.setSystemTime(Date.now() + clockMs);
    resync({ quiet_s: HOUR_MS / 1000 });
    await vi.advanceTimersByTimeAsync(0);
    expect(requests).toEqual([2]);
  });

  it('refetches names of metrics and film strips every ten seconds of training, and at its end', async () => {
    const requests = await watching(
      keys.series([A], ['loss/value']),
      keys.runResource(A, 'episodes', 'spread', 9),
      keys.runResource(A, 'series-names'),
      keys.runResource(A, 'panels'),
    );
    for (let second = 0; second < 30; second += 1) {
      send(routine('episodes', 'metrics', 'series/loss'));
      await vi.advanceTimersByTimeAsync(1000);
    }
    // At the start, and after 10, 20 and 30 s.
    expect(requests.slice(1)).toEqual([4, 4, 4]);
    expect(requests[0]).toBeGreaterThanOrEqual(10);
    // The last ones before a pause are shown all the same.
    await vi.advanceTimersByTimeAsync(10 * SLOW_MS);
    expect(requests.slice(1)).toEqual([5, 5, 5]);

    send(routine('episodes', 'metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(0);
    expect(requests.slice(1)).toEqual([6, 6, 6]);
    send(routine('episodes', 'metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(SLOW_MS - 1000);
    const before = [...requests];
    expect(before.slice(1)).toEqual([6, 6, 6]);
    send({ run: A, revision: 99, state: 'finished' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests.slice(1)).toEqual([7, 7, 7]);
    await vi.advanceTimersByTimeAsync(10 * SLOW_MS);
    expect(requests).toEqual([(before[0] ?? 0) + 1, 7, 7, 7]);
  });

  it('shows answers that take longer than the events, and fetches once more after the last event', async () => {
    const { client } = await watchedClient();
    const queryKey = keys.series([A], ['loss/value']);
    const asked: number[] = [];
    const queryFn = ({ signal }: { signal: AbortSignal }) =>
      new Promise((resolve, reject) => {
        asked.push(performance.now());
        signal.addEventListener('abort', reject);
        setTimeout(() => resolve(asked.length), 5000);
      });
    onTestFinished(new QueryObserver(client, { queryKey, queryFn }).subscribe(() => undefined));
    for (let second = 0; second < 30; second += 1) {
      send(routine('series/loss'));
      await vi.advanceTimersByTimeAsync(1000);
    }
    const lastEventAt = performance.now() - 1000;
    expect(client.getQueryData(queryKey)).toBe(6);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(client.getQueryState(queryKey)).toMatchObject({ data: asked.length, fetchStatus: 'idle' });
    expect(asked.at(-1)).toBeGreaterThan(lastEventAt);
    expect(asked.length).toBeLessThanOrEqual(8);
  });

  it('goes on when the clock is set back', async () => {
    const requests = await watching(keys.series([A], ['loss/value']), keys.runResource(A, 'panels'));
    send(routine('metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(0);
    vi.setSystemTime(Date.now() - HOUR_MS);
    const before = [...requests];
    send(routine('metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(SLOW_MS + 4000);
    expect(requests).toEqual(before.map((n) => n + 1));
  });

  it('the end of a job brings nothing of a training run forward', async () => {
    const requests = await watching(
      keys.series([A], ['loss/value']),
      keys.runResource(A, 'episodes', '-agent_steps'),
    );
    send(routine('series/loss'));
    await vi.advanceTimersByTimeAsync(0);
    const before = [...requests];
    send(routine('series/loss'));
    send({ job: B, kind: 'video', run: A, state: 'done' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([before[0], (before[1] ?? 0) + 1]);
  });
});
