import type { Data } from 'plotly.js';
import { describe, expect, it } from 'vitest';
import type { Chart, Curve } from '@/api/series';
import { fill, shownOfTotal, withoutEmptyShares } from './fill';

const curve = (more: Partial<Curve>): Curve =>
  ({
    run: 'A',
    metric: 'm',
    source: '',
    x: [1, 2],
    mean: [3, 4],
    min: [2, 3],
    max: [4, 5],
    count: [1, 1],
    smoothed: null,
    n_total: 2,
    n_shown: 2,
    ...more,
  }) as Curve;
const chart = (...series: Curve[]): Chart => ({ x: 'agent_steps', smooth: 0, groups: [], series });
const trace = (meta: object): Data => ({ type: 'scatter', x: [], y: [], meta }) as Data;
const filled = (traces: Data[], series: Chart) =>
  fill({ data: traces, layout: {} }, series) as { x: unknown; y: unknown }[];

describe('fill', () => {
  it('fills a trace with its column', () => {
    const smoothed = curve({ smoothed: [5, 6] });
    const [line] = filled([trace({ run: 'A', metric: 'm', source: '', y: 'smoothed' })], chart(smoothed));
    expect(line).toMatchObject({
      x: [1, 2],
      y: [5, 6],
      customdata: [
        [2, 4, 1],
        [3, 5, 1],
      ],
    });
  });

  it('leaves a trace with data of its own unchanged', () => {
    const complete = { type: 'scatter', x: [9], y: [9], meta: { run: 'A', protocol: 'noop_starts' } } as Data;
    expect(filled([complete], chart(curve({})))[0]).toBe(complete);
  });

  const group = { id: 'G', metric: 'm', source: '', x: [8], median: [2], low: [1], high: [3], n: [5] };
  const ofGroup = (y: string, seed?: number) => trace({ group: 'G', metric: 'm', source: '', y, seed });

  it('fills the median and the band of a group of seeds', () => {
    const seeds = { ...chart(), groups: [group] } as unknown as Chart;
    const [low, median] = filled([ofGroup('low'), ofGroup('median')], seeds);
    expect(low).toMatchObject({ x: [8], y: [1] });
    expect(median).toMatchObject({ x: [8], y: [2], customdata: [[1, 3, 5]] });
  });

  it('fills each seed of a group that has too few for a band', () => {
    const few = { ...group, seed_values: [[5], [6]] };
    const seeds = { ...chart(), groups: [few] } as unknown as Chart;
    const [first, second, missing] = filled(
      [0, 1, 2].map((seed) => ofGroup('seed_values', seed)),
      seeds,
    );
    expect(first).toMatchObject({ x: [8], y: [5] });
    expect(second).toMatchObject({ x: [8], y: [6] });
    expect(missing).toMatchObject({ x: [8], y: [] });
  });

  it('empties a trace whose series is missing', () => {
    const [missing] = filled([trace({ run: 'B', metric: 'm', source: '', y: 'mean' })], chart(curve({})));
    expect(missing).toMatchObject({ x: [], y: [] });
  });
});

describe('fill, behind the line', () => {
  const behind = (more: object, run = 'A') => trace({ run, metric: 'm', source: '', ...more });
  const envelope = (run?: string) => behind({ y: 'max', low: 'min', from: 8 }, run);
  const buckets = curve({
    x: [1, 2, 3, 4],
    mean: [1, 2, 3, 4],
    min: [0, 1, 2, 3],
    max: [2, 3, 4, 9],
    count: [8, 9, 1, 8],
  });

  it('outlines the range of buckets with many values, and names it once', () => {
    const other = { ...buckets, run: 'B' };
    const [first, second] = filled([envelope(), envelope('B')], chart(buckets, other));
    expect(first).toMatchObject({
      x: [1, 2, 2, 1, null, 4, 4],
      y: [2, 3, 1, 0, null, 9, 3],
      showlegend: true,
    });
    expect(second).toMatchObject({ showlegend: false });
  });

  it('draws buckets with few values as points, without a range', () => {
    const few = chart(curve({}));
    const [points, range] = filled([behind({ y: 'mean', below: 8 }), envelope()], few);
    expect(points).toMatchObject({ x: [1, 2], y: [3, 4] });
    expect(range).toMatchObject({ x: [], showlegend: false });
    expect(filled([behind({ y: 'mean', below: 8 })], chart(buckets))[0]).toMatchObject({ x: [3], y: [3] });
  });
});

describe('fill, by number of points', () => {
  const mode = (x: number[]) =>
    (
      filled([trace({ run: 'A', metric: 'm', source: '', y: 'mean' })], chart(curve({ x, mean: x }))) as {
        mode?: string;
      }[]
    )[0]?.mode;

  it('adds markers to a single point and none to 50', () => {
    expect(mode([1])).toBe('lines+markers');
    expect(mode(Array.from({ length: 50 }, (_, at) => at))).toBeUndefined();
  });
});

it('shownOfTotal counts the points, and those shown when downsampled', () => {
  expect(shownOfTotal([curve({ n_total: 4000, n_shown: 1000 })])).toBe('1,000 of 4,000 points');
  expect(shownOfTotal([curve({})])).toBe('2 points');
  expect(shownOfTotal([curve({ n_total: 1, n_shown: 1 })])).toBe('1 point');
});

it('withoutEmptyShares hides only all-zero shares from the legend', () => {
  const traces = [
    { name: 'lag 0', stackgroup: 'shares', y: [0.5, 1] },
    { name: 'lag 64+', stackgroup: 'shares', y: [0, null] },
    { name: 'lost pushes', y: [0, 0] },
  ] as Data[];
  expect(withoutEmptyShares(traces).map((trace) => (trace as { showlegend?: boolean }).showlegend)).toEqual([
    undefined,
    false,
    undefined,
  ]);
});

describe('on a log scale', () => {
  it('shownOfTotal mentions omitted points', () => {
    const low = curve({ mean: [-1, 4] });
    expect(shownOfTotal([low])).toBe('2 points');
    expect(shownOfTotal([low], true)).toBe('2 points; values ≤ 0 are not shown on a log scale');
    expect(shownOfTotal([curve({})], true)).toBe('2 points');
  });
});
