import { describe, expect, it } from 'vitest';
import {
  formatX,
  mergeChart,
  mergeCurve,
  revisionsOf,
  type Chart,
  type Curve,
  type GroupCurve,
} from './series';

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
  it('replaces the buckets from the first updated one on', () => {
    const previous = curve([1, 2, 3]);
    const update = curve([30, 4], { reset: false, first_bucket: 2, revision: 2, n_shown: 4 });
    const merged = mergeCurve(previous, update);
    expect(merged.x).toEqual([1, 2, 30, 4]);
    expect(merged.mean).toEqual([1, 2, 30, 4]);
    expect(merged.revision).toBe(2);
    expect(previous.x).toEqual([1, 2, 3]);
  });

  it('returns the update alone after a reset', () => {
    expect(mergeCurve(curve([1, 2, 3]), curve([7], { reset: true })).x).toEqual([7]);
  });

  it('returns the previous buckets for an empty update', () => {
    expect(mergeCurve(curve([1, 2]), curve([], { reset: false, first_bucket: 2 })).x).toEqual([1, 2]);
  });

  it('merges the smoothed values like the others', () => {
    const previous = curve([1, 2], { smoothed: [1, 1.5] });
    const update = curve([3], { reset: false, first_bucket: 2, smoothed: [2] });
    expect(mergeCurve(previous, update).smoothed).toEqual([1, 1.5, 2]);
  });
});

describe('mergeChart', () => {
  it('drops series that the update no longer contains', () => {
    const chart = (series: Curve[]) => ({ x: 'agent_steps' as const, smooth: 0, groups: [], series });
    const previous = chart([curve([1]), curve([1], { metric: 'loss/value' })]);
    const merged = mergeChart(previous, chart([curve([2], { reset: false, first_bucket: 1 })]));
    expect(merged.series.map(({ metric, x }) => [metric, x])).toEqual([['rollout/episode_return', [1, 2]]]);
  });
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
      seed_values: [],
      ...more,
    }) as GroupCurve;
  const chart = (...groups: GroupCurve[]): Chart => ({ x: 'agent_steps', smooth: 0, series: [], groups });

  it('are merged like curves', () => {
    const merged = mergeChart(chart(group([1, 2])), chart(group([20, 3], { reset: false, first_bucket: 1 })));
    expect(merged.groups[0]?.mean).toEqual([1, 20, 3]);
  });

  it('merge the values of each seed by its run', () => {
    const before = group([1, 2], { runs: ['B'], seed_values: [[5, 6]] });
    const update = group([3], { reset: false, first_bucket: 2, runs: ['A', 'B'], seed_values: [[8], [7]] });
    const merged = mergeChart(chart(before), chart(update));
    expect(merged.groups[0]?.seed_values).toEqual([
      [null, null, 8],
      [5, 6, 7],
    ]);
    const enough = group([3], { reset: false, first_bucket: 0 });
    expect(mergeChart(chart(before), chart(enough)).groups[0]?.seed_values).toEqual([]);
  });

  it('supply the revision of each of their runs', () => {
    expect(revisionsOf(chart(group([1])), ['B', 'A', 'C'])).toEqual([7, 4, 0]);
  });
});

it('formatX names the unit of a time', () => {
  expect(formatX('clock_time_s', 3600.4)).toBe('Clock time 3,600 s');
  expect(formatX('agent_steps', 12_345)).toBe('Agent steps 12,345');
});
