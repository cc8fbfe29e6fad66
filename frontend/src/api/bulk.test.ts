import { describe, expect, it, vi } from 'vitest';
import { applyBulk, undoBulk, type BulkResult } from './runs';

const item = (id: string, done = true, changed_tags: string[] = []) => ({
  id,
  name: id,
  done,
  detail: '',
  changed_tags,
});

const service = vi.hoisted(() => {
  const state = { bodies: [] as Record<string, unknown>[], results: [] as unknown[] };
  // Before the API client is created, which keeps the function.
  vi.stubGlobal('fetch', async (request: Request) => {
    state.bodies.push((await request.json()) as Record<string, unknown>);
    return Response.json(state.results.shift() ?? { items: [], n_done: 0, n_refused: 0 });
  });
  return state;
});

/** Answers the service's next bulk requests in turn, and returns their bodies. */
function answer(...results: BulkResult[]): Record<string, unknown>[] {
  service.bodies = [];
  service.results = results;
  return service.bodies;
}

describe('applyBulk', () => {
  it('continues until the filter has no more runs, with the expected number at first', async () => {
    const bodies = answer(
      { items: [item('a')], n_done: 1, n_refused: 0, next_after: 'a' },
      { items: [item('b', false)], n_done: 0, n_refused: 1, next_after: null },
    );
    const result = await applyBulk('archive', { filter: 'score>1', expected: 2 });
    expect(bodies.map(({ expected, after }) => [expected, after])).toEqual([
      [2, undefined],
      [undefined, 'a'],
    ]);
    expect([result.items.length, result.n_done, result.n_refused]).toEqual([2, 1, 1]);
  });

  it('changes many selected runs in several requests, which are one result', async () => {
    const ids = Array.from({ length: 1_100 }, (_, k) => String(k));
    const done = { items: [item('a')], n_done: 1, n_refused: 0 };
    const bodies = answer(done, done, { items: [item('b', false)], n_done: 0, n_refused: 1 });
    const result = await applyBulk('archive', { ids });
    expect(bodies.map((body) => (body.ids as string[]).length)).toEqual([500, 500, 100]);
    expect(bodies.flatMap((body) => body.ids)).toEqual(ids);
    expect([result.items.length, result.n_done, result.n_refused]).toEqual([3, 2, 1]);
  });

  it('deletes so that it can be undone', async () => {
    const bodies = answer();
    await applyBulk('delete', { ids: ['a'] });
    expect(bodies[0]?.restorable).toBe(true);
  });
});

describe('undoBulk', () => {
  it('restores the deleted runs, not those that were refused', async () => {
    const bodies = answer();
    await undoBulk('delete', { items: [item('a'), item('b', false)], n_done: 1, n_refused: 1 });
    expect(bodies).toEqual([{ action: 'restore', ids: ['a'], dry_run: false, restorable: false }]);
  });

  it('removes only the tags that were added to each run', async () => {
    const bodies = answer();
    const items = [item('a', true, ['x', 'y']), item('b', true, ['y']), item('c', true, [])];
    await undoBulk('tag', { items, n_done: 3, n_refused: 0 });
    expect(bodies.map(({ action, ids, tags }) => [action, ids, tags])).toEqual([
      ['untag', ['a'], ['x', 'y']],
      ['untag', ['b'], ['y']],
    ]);
  });

  it('moves runs back to the projects in which they were', async () => {
    const bodies = answer();
    const items = [
      { ...item('a'), former_project: 'atari' },
      { ...item('b'), former_project: 'default' },
      { ...item('c'), former_project: 'atari' },
    ];
    await undoBulk('move', { items, n_done: 3, n_refused: 0 });
    expect(bodies.map(({ action, ids, project }) => [action, ids, project])).toEqual([
      ['move', ['a', 'c'], 'atari'],
      ['move', ['b'], 'default'],
    ]);
  });
});
