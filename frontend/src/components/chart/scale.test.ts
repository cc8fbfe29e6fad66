import type { Data, Layout } from 'plotly.js';
import { describe, expect, it, vi } from 'vitest';
import NUMBERS from '@/lib/numbers.json';
import { flatRange, logTicks, onLogScale, outsideMarks, tickTexts, withTickTexts, yAxis } from './scale';

const drawn = (...y: number[]) => [
  { type: 'scatter', x: y.map((_, at) => at), y: Float64Array.from(y) } as Data,
];

describe('flatRange', () => {
  it('pads values that differ only by rounding', () => {
    const [low, high] = flatRange(drawn(0.003, 0.0030000000000000005, NaN)) ?? [0, 0];
    expect(low).toBeCloseTo(0.0015);
    expect(high).toBeCloseTo(0.0045);
    expect(flatRange(drawn(-5, -5))).toEqual([-7.5, -2.5]);
  });

  it('returns undefined for varying values, zeros and no traces', () => {
    expect(flatRange(drawn(0.003, 0.0031))).toBeUndefined();
    expect(flatRange(drawn(0, 0))).toBeUndefined();
    expect(flatRange([])).toBeUndefined();
  });

  it('returns undefined for values too small to be halved', () => {
    expect(flatRange(drawn(5e-324, 5e-324))).toBeUndefined();
  });
});

it('onLogScale moves labels to their exponents and drops those at or below 0', () => {
  const label = (y: number) => ({ text: `level ${y}`, yref: 'y' as const, y });
  const line = (y0: number) => ({ type: 'line' as const, yref: 'y' as const, y0, y1: y0 });
  const yaxis = { range: [0, 1] }; // of shares, which would be exponents
  const layout = { yaxis, annotations: [label(100), label(-20)], shapes: [line(100), line(-20)] };
  expect(onLogScale(layout).yaxis).not.toHaveProperty('range');
  expect(onLogScale(layout)).toMatchObject({
    yaxis: { type: 'log' },
    annotations: [{ text: 'level 100', y: 2 }],
    shapes: [{ y0: 100 }],
  });
});

describe('the ticks of a log scale', () => {
  it('are numbers above 0, whatever the values are', () => {
    for (const range of [
      [5e-324, 5e-324],
      [5e-324, 1e-300],
      [1e-320, 1e300],
    ] as const)
      for (const tick of logTicks([...range])) expect(tick > 0 && Number.isFinite(tick)).toBe(true);
  });

  it('are around a constant whose means differ by rounding', () => {
    const { tickvals, range } = yAxis(drawn(0.003, 0.0030000000000000005), null, true);
    const [low, high] = (range as number[]).map((exponent) => 10 ** exponent);
    expect([low, high]).toEqual([expect.closeTo(0.0015), expect.closeTo(0.0045)]);
    expect((tickvals as number[]).filter((tick) => tick > (low ?? 0) && tick < (high ?? 0))).toEqual([
      0.002, 0.003, 0.004,
    ]);
  });

  it('are decades', () => expect(logTicks([0.02, 700])).toEqual([0.01, 0.1, 1, 10, 100, 1000]));

  it('are labelled in full where there are few decades', () =>
    expect(yAxis(drawn(12, 60), null, true)).toMatchObject({
      tickvals: [10, 20, 50, 100, 200, 500],
      ticktext: ['10', '20', '50', '100', '200', '500'],
    }));

  it('are at equal steps within less than a decade', () => {
    expect(logTicks([2.3, 4.5])).toEqual([2, 2.5, 3, 3.5, 4, 4.5]);
    expect(logTicks([6, 15])).toEqual([6, 8, 10, 12, 14, 16]);
    expect(logTicks([1.1e-7, 1.8e-7])).toEqual([1e-7, 1.2e-7, 1.4e-7, 1.6e-7, 1.8e-7]);
  });

  it('are at least two inside every extent', () => {
    for (const low of [1e-300, 1e-7, 0.0023, 0.1, 1, 1.1, 2.3, 5.5, 9.9, 10, 99_999, 3e8, 7e200])
      for (const ratio of [1.00001, 1.01, 1.3, 1.96, 2, 2.6, 4.2, 5, 9, 10, 11, 47, 101, 5e3, 1e9, 1e50]) {
        const inside = logTicks([low, low * ratio]).filter((tick) => tick >= low && tick <= low * ratio);
        expect(inside.length, `${low} to ${low * ratio}`).toBeGreaterThanOrEqual(2);
        expect(inside.length, `${low} to ${low * ratio}`).toBeLessThan(13);
      }
  });

  it('have the texts of tables', () =>
    expect(yAxis(drawn(5e3, 2e6), null, true)).toMatchObject({
      tickvals: [1e3, 1e4, 1e5, 1e6, 1e7],
      ticktext: ['1,000', '10.0k', '100k', '1.0M', '10.0M'],
    }));

  it('skip decades where there are many', () => expect(logTicks([1e-20, 1e20]).length).toBeLessThan(10));
});

it.each(NUMBERS as [number, string, string, string?][])(
  '%d, which the chart library writes as %s, has the text of tables, %s, unless rounded there',
  (_, tick, text, onAxis = text) => expect(tickTexts()[tick] ?? tick).toBe(onAxis),
);

it('every axis of a layout writes numbers as tables do', () => {
  const { xaxis, yaxis2, legend } = withTickTexts({
    xaxis: { type: 'log' },
    yaxis2: {},
    legend: {},
  }) as Layout;
  expect(xaxis).toEqual({ type: 'log', labelalias: tickTexts() });
  expect(yaxis2).toEqual({ labelalias: tickTexts() });
  expect(legend).toEqual({});
});

describe('the y axis', () => {
  it('follows the values in view', () => {
    expect(yAxis(drawn(0, 10, 20, 1000), [1, 2], false)).toMatchObject({ range: [9.5, 20.5] });
    expect(yAxis(drawn(1, 10, 100, 1e6), [1, 2], true).range).toEqual([0.95, 2.05]);
  });

  it('is the library’s without a zoom', () => expect(yAxis(drawn(0, 10), null, false)).toEqual({}));
});

it('no text of an axis is made before the first chart', async () => {
  vi.resetModules();
  const formatTick = vi.fn(String);
  vi.doMock('@/lib/format', () => ({ formatTick }));
  const scale = await import('./scale');
  vi.doUnmock('@/lib/format');
  expect(formatTick).not.toHaveBeenCalled();
  expect(scale.tickTexts()['4M']).toBe('4000000');
});

describe('a few values far from all others', () => {
  const line = (y: readonly number[]) => [{ ...drawn(...y)[0], meta: { kind: 'line' } } as Data];
  const noise = Array.from({ length: 1000 }, (_, at) => 1 + Math.sin(at));
  const spike = noise.map((value, at) => (at === 500 ? 1e9 : value));

  it('do not flatten the line, and are marked', () => {
    const { range, autorange } = yAxis(line(spike), null, false);
    expect(autorange).toBe(false);
    expect((range as number[])[1]).toBeLessThan(3);
    expect(outsideMarks(line(spike), null, false).map(({ text }) => text)).toEqual([
      '▲ 1 value to 1e9 outside',
    ]);
    expect(yAxis(line(spike), [600, 700], false).range).not.toEqual(range);
    expect(outsideMarks(line(spike), [600, 700], false)).toEqual([]);
  });

  it('are shown where a line ends at them, where they are many, and on a log scale', () => {
    const steps = (share: number) => noise.map((value, at) => (at >= 1000 * (1 - share) ? 1e9 : value));
    for (const shown of [steps(0.05), [...steps(0.2), 1], noise, noise.map(() => 0)])
      expect(outsideMarks(line(shown), null, false)).toEqual([]);
    expect(outsideMarks(line(spike), null, true)).toEqual([]);
  });
});
