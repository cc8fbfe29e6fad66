import { readdirSync, readFileSync } from 'node:fs';
import { QueryClient, QueryObserver, type QueryMeta } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { api } from './client';
import type { LiveEvent } from './eventStream';
import { panelsQuery } from './figures';
import { keys, UNWATCHED, type Key } from './keys';
import { isAffected, isRefused, SLOW_MS, startLiveUpdates } from './liveUpdates';
import { ApiProblem } from './problem';
import { episodeQuery, spreadEpisodesQuery } from './runResources';
import type { RunList, RunsQuery } from './runs';
import { seriesNamesQuery } from './series';
import { studyQuery } from './studies';
import { sweepQuery } from './sweeps';

vi.hoisted(() => {
  globalThis.fetch = () => Promise.resolve(Response.json({}));
});

afterEach(() => vi.unstubAllGlobals());

const A = '01K0000000000000000000000A';
const B = '01K0000000000000000000000B';

const event = (kind: string, id: string, rest: Partial<LiveEvent> = {}): LiveEvent => ({
  kind,
  id,
  parents: {},
  state: null,
  changed: [],
  ...rest,
});
const routine = (...changed: string[]) => event('run', A, { state: 'running', changed });
const job = (does: string, state = 'done', run = A) =>
  event('job', B, {
    parents: { run },
    state,
    changed: ['state', does, ...(state === 'done' || state === 'failed' ? ['result'] : [])],
  });

/** The kinds that the service records; an experiment's is that of its row. */
const KINDS = [
  'sweep',
  'study',
  ...new Set(
    ['../backend/', '../workers/']
      .flatMap((folder) =>
        readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => folder + name),
      )
      .filter((file) => file.endsWith('.py'))
      .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/record_change\(\s*session, "([^"]+)"/g)])
      .map(([, kind]) => kind ?? ''),
  ),
];

describe('isAffected', () => {
  const points = routine('progress', 'series/loss');

  it('holds for exactly the keys that begin with the thing or its parents, and show a changed part', () => {
    const parts = [[], ['log'], ['series/loss'], ['log', 'series/eval']];
    const parents: Record<string, string>[] = [
      {},
      ...KINDS.flatMap((kind) => [A, B].map((id) => ({ [kind]: id }))),
    ];
    const events = KINDS.flatMap((kind) =>
      parents
        .filter((of) => !(kind in of))
        .flatMap((of) => parts.map((changed) => event(kind, A, { parents: of, changed }))),
    );
    const beginnings = KINDS.flatMap((kind) => [null, A, B, [A, B], []].map((ids) => [kind, ids] as const));
    const shown = [undefined, { search: '' }, [], 'log', 'series', 'series/loss', ['log', 'episodes']];
    const names = (ids: null | string | string[], id: string) => ids === null || [ids].flat().includes(id);
    for (const of of events)
      for (const [kind, ids] of beginnings) {
        const isOwn = kind === of.kind && names(ids, A);
        const isParent = kind in of.parents && names(ids, of.parents[kind] ?? '');
        for (const part of shown) {
          const isNamed = typeof part === 'string' || Array.isArray(part);
          const isChanged =
            of.changed.length === 0 ||
            (isNamed &&
              [part].flat().some((name) => of.changed.some((c) => c === name || c.startsWith(`${name}/`))));
          const expected = (isOwn && (!isNamed || isChanged)) || (isParent && isChanged);
          if (isAffected([kind, ids, part], of) !== expected)
            expect.fail(
              `${JSON.stringify([kind, ids, part])} and ${JSON.stringify(of)}: not ${String(expected)}`,
            );
        }
      }
  });

  it('concerns every key but those that no event changes', () => {
    const all = Object.values(keys) as unknown as ((...of: Key[]) => Key)[];
    const first = all.map((key) => key([A], ['loss/value'])[0]);
    expect(KINDS).toEqual(expect.arrayContaining(['run', 'host', 'job', 'sweep', 'study']));
    expect([...new Set(first)].filter((kind) => kind !== UNWATCHED && !KINDS.includes(String(kind)))).toEqual(
      [],
    );
  });

  it('refetches a run and its charts of changed metrics alone after new points', () => {
    expect(isAffected(keys.run(A), points)).toBe(true);
    expect(isAffected(keys.series([B, A], ['eval/plain/mean_return', 'loss/value']), points)).toBe(true);
    expect(isAffected(keys.series([A], ['rollout/episode_return']), points)).toBe(false);
    expect(isAffected(keys.series([B], ['loss/value']), points)).toBe(false);
    expect(isAffected(keys.run(B), points)).toBe(false);
    const others = ['checkpoints', 'log', 'settings', 'step_notes', 'protocols'].map((part) =>
      keys.runResource(A, part),
    );
    for (const key of [...others, keys.episodes(A), keys.evaluations(A), keys.seriesNames(A), keys.marks(A)])
      expect(isAffected(key, points), JSON.stringify(key)).toBe(false);
  });

  it('refetches the resource that an event names', () => {
    const episode = routine('episodes', 'metrics');
    expect(isAffected(keys.episodes(A, '-agent_steps'), episode)).toBe(true);
    expect(isAffected(keys.seriesNames(A), episode)).toBe(true);
    expect(isAffected(keys.evaluations(A), episode)).toBe(false);
    expect(isAffected(episodeQuery(A, 'x').queryKey, episode)).toBe(false);
  });

  it('refetches everything of a run after an event that names nothing', () => {
    const transition = event('run', A, { state: 'stopped' });
    for (const key of [
      keys.runResource(A, 'log', ''),
      keys.runResource(A, 'settings'),
      keys.series([A], ['x/y']),
    ])
      expect(isAffected(key, transition)).toBe(true);
    expect(isAffected(keys.hosts(), transition)).toBe(false);
  });

  it('refetches what a job of its kind changes, but not the run', () => {
    expect(isAffected(keys.run(A), job('video'))).toBe(false);
    expect(isAffected(keys.episodes(A, '-agent_steps'), job('video', 'running'))).toBe(true);
    expect(isAffected(episodeQuery(A, 'x').queryKey, job('video'))).toBe(true);
    expect(isAffected(keys.evaluations(A), job('video'))).toBe(false);
    expect(isAffected(keys.series([A], ['loss/value']), job('video'))).toBe(false);
    expect(isAffected(keys.evaluations(A), job('evaluation'))).toBe(true);
    expect(isAffected(keys.marks(A), job('evaluation'))).toBe(true);
    expect(isAffected(keys.episodes(A, '-agent_steps'), job('evaluation'))).toBe(false);
    expect(isAffected(keys.episodes(A, 'spread', 9), job('thumbnail'))).toBe(false);
    expect(isAffected(keys.sentVideos(A), job('encode'))).toBe(true);
  });

  it('refetches the metrics that runs have when one of them has a new metric, and at its end', () => {
    const key = keys.metrics([B, A]);
    expect(isAffected(key, routine('metrics', 'series/loss'))).toBe(true);
    expect(isAffected(key, event('run', A, { state: 'stopped' }))).toBe(true);
    expect(isAffected(key, points)).toBe(false);
    expect(isAffected(keys.metrics([B]), routine('metrics'))).toBe(false);
  });

  it('refetches a comparison of evaluations after each of them, and any at the end of a run', () => {
    const evaluations = keys.comparison([B, A], 'evaluation', 'common', undefined, undefined);
    const training = keys.comparison([B, A], 'training', 'common', undefined, undefined);
    expect(isAffected(evaluations, routine('evaluations'))).toBe(true);
    expect(isAffected(evaluations, job('evaluation'))).toBe(true);
    expect(isAffected(evaluations, job('evaluation', 'done', 'another'))).toBe(false);
    for (const key of [evaluations, training]) {
      expect(isAffected(key, points)).toBe(false);
      expect(isAffected(key, event('run', A, { state: 'stopped' }))).toBe(true);
    }
    expect(isAffected(training, routine('evaluations'))).toBe(false);
  });

  it('refetches hosts, sweeps and papers after their own events alone', () => {
    const heartbeat = event('host', 'here', { changed: ['heartbeat'] });
    expect(isAffected(keys.hosts(), heartbeat)).toBe(true);
    // A run's page shows a silent host only: no heartbeat is of interest to it.
    expect(isAffected(keys.hostSilence(), heartbeat)).toBe(false);
    const sweep = event('sweep', A, { state: 'running' });
    expect(isAffected(keys.sweeps(), sweep)).toBe(true);
    expect(isAffected(keys.sweep(A), sweep)).toBe(true);
    expect(isAffected(keys.papers('custom'), event('study', A))).toBe(true);
    for (const key of [keys.sweep(B), keys.run(A), keys.hosts(), keys.papers()])
      expect(isAffected(key, sweep), JSON.stringify(key)).toBe(false);
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
  const send = (event: LiveEvent): void => {
    (source as unknown as { onmessage: (message: object) => void }).onmessage({
      data: JSON.stringify(event),
    });
  };

  type Watched = Key | { queryKey: Key; meta?: QueryMeta | undefined };

  /** A page that shows a query of each key; the numbers of their requests. */
  const watching = async (...queries: readonly Watched[]) => (await watchedClient(...queries)).requests;

  async function watchedClient(...queries: readonly Watched[]) {
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
    const requests = queries.map(() => 0);
    const stops = queries.map((query, at) =>
      new QueryObserver(client, {
        queryKey: 'queryKey' in query ? query.queryKey : query,
        ...('queryKey' in query && query.meta && { meta: query.meta }),
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

  it('refetches a sweep after changes of state of its own runs alone', async () => {
    const sweep = sweepQuery('S');
    const { client, requests } = await watchedClient(sweep, keys.sweeps());
    client.setQueryData(sweep.queryKey, { configurations: [{ runs: [{ run: null }, { run: A }] }] } as never);
    for (const other of [routine('log'), event('run', B, { state: 'failed' }), job('video')]) {
      send(other);
      await vi.advanceTimersByTimeAsync(4000);
    }
    expect(requests).toEqual([1, 1]);
    send(event('run', A, { state: 'failed' }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2, 1]);
  });

  it('refetches a study after changes of state of runs, also when it sends no more events itself', async () => {
    const requests = await watching(studyQuery('S'));
    for (const other of [routine('log'), job('video')]) {
      send(other);
      await vi.advanceTimersByTimeAsync(4000);
    }
    expect(requests).toEqual([1]);
    send(event('run', A, { state: 'stopped' }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2]);
  });

  it('refetches lists after a change of state, whatever else of runs is shown', async () => {
    const requests = await watching([...keys.allRuns(), 'branch-policies', 'Catch-v0'], keys.runs({}));
    send(event('run', B, { state: 'finished' }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2, 2]);
  });

  it('refetches lists later, after changes of single runs, which may belong to other lists by then', async () => {
    const requests = await watching(keys.runs({}));
    send(event('run', A, { state: 'finished' }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([2]);
    send(event('run', A, { state: 'finished' })); // archived, for example
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
    send(event('run', B, { state: 'finished' }));
    send(event('run', 'a run of no list', { state: 'finished' }));
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
      spreadEpisodesQuery(A, 9, null),
      seriesNamesQuery(A),
      panelsQuery(A),
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
    send(event('run', A, { state: 'finished' }));
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
    const requests = await watching(keys.series([A], ['loss/value']), panelsQuery(A));
    send(routine('metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(0);
    vi.setSystemTime(Date.now() - HOUR_MS);
    const before = [...requests];
    send(routine('metrics', 'series/loss'));
    await vi.advanceTimersByTimeAsync(SLOW_MS + 4000);
    expect(requests).toEqual(before.map((n) => n + 1));
  });

  it('the end of a job brings nothing of a training run forward', async () => {
    const requests = await watching(keys.series([A], ['loss/value']), keys.episodes(A, '-agent_steps'));
    send(routine('series/loss'));
    await vi.advanceTimersByTimeAsync(0);
    const before = [...requests];
    send(routine('series/loss'));
    send(job('video'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([before[0], (before[1] ?? 0) + 1]);
  });
});
