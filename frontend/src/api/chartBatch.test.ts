import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fetchChart } from './chartBatch';
import { api } from './client';

type Query = { metric: string[]; since_revision?: number[] };

const requests: Query[] = [];
let status = 200;

beforeEach(() => {
  requests.length = 0;
  status = 200;
  vi.spyOn(api, 'GET').mockImplementation(((_path: string, { params }: { params: { query: Query } }) => {
    requests.push(params.query);
    const series = params.query.metric.map((metric) => ({ run: 'A', metric, source: '' }));
    const data = { x: 'agent_steps', smooth: 0, series, groups: [] };
    return Promise.resolve({ data, response: new Response(null, { status }) });
  }) as never);
});

afterEach(() => vi.restoreAllMocks());

const ask = (metric: string, more: Record<string, unknown> = {}, signal = new AbortController().signal) =>
  fetchChart({ run: ['A'], metric: [metric], points: 500, ...more }, signal);

describe('fetchChart', () => {
  it('sends one request for charts that differ in their metrics alone', async () => {
    const charts = await Promise.all([
      ask('loss/policy', { since_revision: [7] }),
      ask('loss/value', { since_revision: [5] }),
      ask('loss/policy', { since_revision: [7] }),
    ]);
    expect(charts.map(({ series }) => series.map(({ metric }) => metric))).toEqual([
      ['loss/policy'],
      ['loss/value'],
      ['loss/policy'],
    ]);
    expect(requests).toHaveLength(1);
    expect(requests[0]?.metric).toEqual(['loss/policy', 'loss/value']);
    expect(requests[0]?.since_revision).toEqual([5]);
  });

  it('keeps apart what differs in anything else, and new charts from updates', async () => {
    await Promise.all([ask('a'), ask('b', { points: 64 }), ask('c', { since_revision: [5] })]);
    expect(requests.map(({ metric }) => metric)).toEqual([['a'], ['b'], ['c']]);
  });

  it('rejects every chart of a request that failed, and none of another', async () => {
    status = 503;
    const failed = await Promise.allSettled([ask('a'), ask('b')]);
    expect(failed.map((each) => each.status)).toEqual(['rejected', 'rejected']);
    status = 200;
    await expect(ask('a')).resolves.toBeDefined();
  });

  it('does not ask for charts that are gone', async () => {
    const gone = new AbortController();
    const left = ask('a', {}, gone.signal);
    gone.abort();
    await expect(left).rejects.toBeDefined();
    expect(requests).toHaveLength(0);
  });
});
