import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fetchFigure } from './figureBatch';
import { api } from './client';

type Query = { figure: string[]; since_revision?: number[]; layout?: boolean };

const requests: Query[] = [];
let status = 200;

beforeEach(() => {
  requests.length = 0;
  status = 200;
  vi.spyOn(api, 'GET').mockImplementation(((_path: string, { params }: { params: { query: Query } }) => {
    requests.push(params.query);
    const data = { items: params.query.figure.map((name) => ({ data: [{ name }], layout: {} })) };
    return Promise.resolve({ data, response: new Response(null, { status }) });
  }) as never);
});

afterEach(() => vi.restoreAllMocks());

const ask = (figure: string, more: Record<string, unknown> = {}, signal = new AbortController().signal) =>
  fetchFigure({ run: ['A'], figure: [figure], points: 500, ...more }, signal);

describe('fetchFigure', () => {
  it('sends one request for figures that differ in their names alone', async () => {
    const answers = await Promise.all([
      ask('curve:loss/policy', { since_revision: [7] }),
      ask('learning_curve', { since_revision: [5], layout: true }),
      ask('curve:loss/policy', { since_revision: [7] }),
    ]);
    expect(answers.map(({ data }) => data.map(({ name }) => name))).toEqual([
      ['curve:loss/policy'],
      ['learning_curve'],
      ['curve:loss/policy'],
    ]);
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      figure: ['curve:loss/policy', 'learning_curve'],
      since_revision: [5],
      layout: true,
    });
  });

  it('keeps apart what differs in anything else, and new figures from updates', async () => {
    await Promise.all([ask('a'), ask('b', { points: 64 }), ask('c', { since_revision: [5] })]);
    expect(requests.map(({ figure }) => figure)).toEqual([['a'], ['b'], ['c']]);
  });

  it('rejects every figure of a request that failed, and none of another', async () => {
    status = 503;
    const failed = await Promise.allSettled([ask('a'), ask('b')]);
    expect(failed.map((result) => result.status)).toEqual(['rejected', 'rejected']);
    status = 200;
    await expect(ask('a')).resolves.toBeDefined();
  });

  it('does not ask for figures that are gone', async () => {
    const gone = new AbortController();
    const left = ask('a', {}, gone.signal);
    gone.abort();
    await expect(left).rejects.toBeDefined();
    expect(requests).toHaveLength(0);
  });
});
