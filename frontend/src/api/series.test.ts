import { describe, expect, it } from 'vitest';
import { mergeChart, mergeCurve, revisionsOf, type Chart, type Curve, type GroupCurve } from './series';

const curve = (x: number[], more: Partial<Curve> = {}): Curve => ({
  run: 'A',
  metric: 'rollout/episode_return',
  source: '',
  revision: 1,
  n_total: x.length,
  n_shown: x.length,
  bucket_rows: 1,
  reset: true,
  first_bucket: 0,
  x,
  mean: x,
  min: x,
  max: x,
  last: x,
  count: x.map(() => 1),
  smoothed: null,
  ...more,
});

describe('mergeCurve', () => {
  it('keeps what did not change and replaces the growing tail', () => {
    const had = curve([1, 2, 3]);
    const news = curve([30, 4], { reset: false, first_bucket: 2, revision: 2, n_shown: 4 });
    const merged = mergeCurve(had, news);
    expect(merged.x).toEqual([1, 2, 30, 4]);
    expect(merged.mean).toEqual([1, 2, 30, 4]);
    expect(merged.revision).toBe(2);
    expect(had.x).toEqual([1, 2, 3]);
  });

  it('starts again when buckets changed their size or points were cut away', () => {
    expect(mergeCurve(curve([1, 2, 3]), curve([7], { reset: true })).x).toEqual([7]);
  });

  it('is unchanged by an empty answer', () => {
    expect(mergeCurve(curve([1, 2]), curve([], { reset: false, first_bucket: 2 })).x).toEqual([1, 2]);
  });

  it('merges the smoothed line too', () => {
    const had = curve([1, 2], { smoothed: [1, 1.5] });
    const news = curve([3], { reset: false, first_bucket: 2, smoothed: [2] });
    expect(mergeCurve(had, news).smoothed).toEqual([1, 1.5, 2]);
  });
});

it('drops series that no longer have points', () => {
  const chart = (series: Curve[]) => ({ x: 'agent_steps' as const, smooth: 0, groups: [], series });
  const had = chart([curve([1]), curve([1], { metric: 'loss/value' })]);
  const merged = mergeChart(had, chart([curve([2], { reset: false, first_bucket: 1 })]));
  expect(merged.series.map(({ metric, x }) => [metric, x])).toEqual([['rollout/episode_return', [1, 2]]]);
});

describe('groups of seeds', () => {
  const group = (x: number[], more: Partial<GroupCurve> = {}): GroupCurve =>
    ({
      id: 'g',
      runs: ['A', 'B'],
      revisions: [4, 7],
      reset: true,
      first_bucket: 0,
      x,
      mean: x,
      low: x,
      high: x,
      n: x.map(() => 2),
      ...more,
    }) as GroupCurve;
  const chart = (...groups: GroupCurve[]): Chart => ({ x: 'agent_steps', smooth: 0, series: [], groups });

  it('merge like curves', () => {
    const merged = mergeChart(chart(group([1, 2])), chart(group([20, 3], { reset: false, first_bucket: 1 })));
    expect(merged.groups[0]?.mean).toEqual([1, 20, 3]);
  });

  it('know the revision of each of their runs', () => {
    expect(revisionsOf(chart(group([1])), ['B', 'A', 'C'])).toEqual([7, 4, 0]);
  });
});
