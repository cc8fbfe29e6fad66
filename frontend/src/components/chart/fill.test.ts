import type { Data } from 'plotly.js';
import { describe, expect, it } from 'vitest';
import type { Chart, Curve } from '@/api/series';
import { fill, flatRange, inPanel, shownOfTotal, withoutEmptyShares } from './fill';

const curve = (more: Partial<Curve>): Curve =>
  ({
    run: 'A',
    metric: 'm',
    source: '',
    x: [1, 2],
    mean: [3, 4],
    min: [2, 3],
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
  it('puts the column a trace asks for into it', () => {
    const [low] = filled([trace({ run: 'A', metric: 'm', source: '', y: 'min' })], chart(curve({})));
    expect(low).toMatchObject({ x: [1, 2], y: [2, 3] });
  });

  it('leaves traces that have their own numbers alone', () => {
    const own = { type: 'scatter', x: [9], y: [9], meta: { run: 'A', protocol: 'noop_starts' } } as Data;
    expect(filled([own], chart(curve({})))[0]).toBe(own);
  });

  it('puts a group of seeds into its mean and its band', () => {
    const group = { id: 'G', metric: 'm', source: '', x: [8], mean: [2], low: [1], high: [3], n: [5] };
    const seeds = { ...chart(), groups: [group] } as unknown as Chart;
    const [low, mean] = filled(
      [
        trace({ group: 'G', metric: 'm', source: '', y: 'low' }),
        trace({ group: 'G', metric: 'm', source: '', y: 'mean' }),
      ],
      seeds,
    );
    expect(low).toMatchObject({ x: [8], y: [1] });
    expect(mean).toMatchObject({ x: [8], y: [2], customdata: [5] });
  });

  it('empties a trace whose series has no points any more', () => {
    const [gone] = filled([trace({ run: 'B', metric: 'm', source: '', y: 'mean' })], chart(curve({})));
    expect(gone).toMatchObject({ x: [], y: [] });
  });
});

describe('few points', () => {
  const modes = (x: number[]) =>
    (
      filled([trace({ run: 'A', metric: 'm', source: '', y: 'mean' })], chart(curve({ x, mean: x }))) as {
        mode?: string;
      }[]
    )[0]?.mode;

  it('are marked, for a line through one is nothing', () => {
    expect(modes([1])).toBe('lines+markers');
    expect(modes(Array.from({ length: 50 }, (_, at) => at))).toBeUndefined();
  });
});

describe('flatRange', () => {
  const drawn = (...y: (number | null)[]) => [{ type: 'scatter', y } as Data];

  it('gives room around what changes by rounding alone', () => {
    const [low, high] = flatRange(drawn(0.003, 0.0030000000000000005, null)) ?? [0, 0];
    expect(low).toBeCloseTo(0.0015);
    expect(high).toBeCloseTo(0.0045);
    expect(flatRange(drawn(-5, -5))).toEqual([-7.5, -2.5]);
  });

  it('leaves all else to the picture', () => {
    expect(flatRange(drawn(0.003, 0.0031))).toBeUndefined();
    expect(flatRange(drawn(0, 0))).toBeUndefined();
    expect(flatRange([])).toBeUndefined();
  });
});

it('says how many points are drawn', () => {
  expect(shownOfTotal([curve({ n_total: 4000, n_shown: 1000 })])).toBe('1,000 of 4,000 points');
  expect(shownOfTotal([curve({})])).toBe('2 points');
  expect(shownOfTotal([curve({ n_total: 1, n_shown: 1 })])).toBe('1 point');
});

it('leaves shares that are nothing out of the legend, and no other line', () => {
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
  it('moves labels to their exponents, and leaves out what has no place there', () => {
    const label = (y: number) => ({ text: `level ${y}`, yref: 'y' as const, y });
    const line = (y0: number) => ({ type: 'line' as const, yref: 'y' as const, y0, y1: y0 });
    const layout = { annotations: [label(100), label(-20)], shapes: [line(100), line(-20)] };
    expect(inPanel(layout, true)).toMatchObject({
      yaxis: { type: 'log' },
      annotations: [{ text: 'level 100', y: 2 }],
      shapes: [{ y0: 100 }],
    });
    expect(inPanel(layout)).toMatchObject(layout);
  });

  it('says that points are left out', () => {
    const low = curve({ mean: [-1, 4] });
    expect(shownOfTotal([low])).toBe('2 points');
    expect(shownOfTotal([low], true)).toBe('2 points; 0 and below have no place on a log scale');
    expect(shownOfTotal([curve({})], true)).toBe('2 points');
  });
});
