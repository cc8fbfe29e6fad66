import { expect, it } from 'vitest';
import type { Figure } from '@/api/tails';
import { notFinite, withoutLine } from './gaps';
import { summaryOf } from './summary';

const line = (x: number[], y: number[], meta: object = {}) => ({
  x: Float64Array.from(x),
  y: Float64Array.from(y),
  meta: { kind: 'line', bucket: Float64Array.from(x.keys()), ...meta },
});
const figure = (n_total: number, n_shown: number, more: object = {}): Figure => ({
  data: [],
  layout: {},
  revisions: [],
  bands: [],
  scales: [],
  n_total,
  n_shown,
  ...more,
});

it('counts the points, and those shown when downsampled', () => {
  expect(summaryOf(figure(4000, 1000), null, false)).toBe('1,000 of 4,000 points');
  expect(summaryOf(figure(1, 1), null, false)).toBe('1 point');
  expect(summaryOf(figure(0, 0), null, false)).toBe('');
});

it('counts what is in view of a zoom, merged points and the seeds of a group as the service does', () => {
  const merged = line([1, 5, 9], [0, 0, 0], { bucket: Float64Array.of(0, 3, 4) });
  expect(summaryOf(figure(5, 5, { data: [merged] }), [4, 9], false)).toBe('4 of 5 points');
  const seeds = [1, 2].map(() => line([1, 5, 9], [0, 0, 0], { group: 'g', source: '' }));
  expect(summaryOf(figure(9, 3, { data: seeds }), [4, 9], false)).toBe('2 of 9 points');
});

it('counts what is not finite by kind, and says why there is no line', () => {
  const gaps = (nan: number[], inf: number[]) => ({
    meta: { kind: 'not_finite', nan: Float64Array.from(nan), inf: Float64Array.from(inf) },
  });
  const partlyFinite = figure(5, 5, { data: [line([1, 2], [NaN, 4]), gaps([200, 0, 99], [0, 0, 1])] });
  expect(notFinite(partlyFinite)).toBe('299 NaN, 1 Inf');
  expect(summaryOf(partlyFinite, null, false)).toBe('5 points; 299 NaN, 1 Inf');
  expect(withoutLine(partlyFinite)).toBe('');
  const none = figure(3000, 2, { data: [line([1, 2], [NaN, NaN]), gaps([3000], [0])] });
  expect(withoutLine(none)).toBe('All 3,000 values are NaN.');
  const mixed = figure(2, 2, { data: [line([1, 2], [NaN, NaN]), gaps([1], [1])] });
  expect(withoutLine(mixed)).toBe('None of the values is finite: 1 NaN, 1 Inf.');
  expect(withoutLine(figure(2, 2, { data: [line([1], [1])] }))).toBe('');
});

it('counts what is not finite in view of a zoom alone', () => {
  const stretches = {
    x: Float64Array.of(NaN, 8, 10, 10, 8, NaN, 14, 15, 15, 14),
    meta: { kind: 'not_finite', nan: Float64Array.of(3, 0, 0, 0, 0, 1, 0, 0, 0, 0) },
  };
  const zoomed = figure(9, 9, { data: [line([1, 16], [0, 4]), stretches] });
  expect(
    [null, [12, 20] as const, [9, 9.5] as const, [11, 12] as const].map((zoom) =>
      notFinite(zoomed, zoom && [...zoom]),
    ),
  ).toEqual(['4 NaN', '1 NaN', '3 NaN', '']);
  expect(summaryOf(zoomed, [11, 20], false)).toBe('1 of 9 points; 1 NaN');
});

it('a single value that is not finite has no band', () => {
  const only = figure(1, 1, {
    data: [line([1], [NaN]), { meta: { kind: 'not_finite', nan: Float64Array.of(1) } }],
    bands: ['band: ± 1 s.d.'],
  });
  expect(withoutLine(only)).toBe('The only value is NaN.');
  expect(summaryOf(only, null, false)).toBe('1 point; 1 NaN');
});

it('says that all values are at one place, with their range where no window averages them', () => {
  const meta = { low: Float64Array.of(0), high: Float64Array.of(29_999) };
  const dot = { data: [line([5], [14_999.5], meta)], x: 'agent_steps' };
  expect(summaryOf(figure(30_000, 469, dot), null, false)).toBe(
    '30,000 values, all at Agent steps 5: 0 to 29,999',
  );
  const averaged = summaryOf(figure(30_000, 469, { ...dot, scales: [20] }), null, false);
  expect(averaged).toBe('30,000 values, all at Agent steps 5');
  expect(summaryOf(figure(30_000, 469, dot), [0, 9], false)).toBe('1 of 30,000 points');
  expect(summaryOf(figure(1, 1, dot), null, false)).toBe('1 point');
  expect(summaryOf(figure(8, 8, { ...dot, data: [line([5, 6], [1, 2])] }), null, false)).toBe('8 points');
  expect(summaryOf(figure(8, 8, { ...dot, data: [...dot.data, ...dot.data] }), null, false)).toBe('8 points');
});

it('names the bands, and what a log scale omits', () => {
  const low = figure(2, 2, { data: [line([1, 2], [-1, 4])], bands: ['band: 95 % CI'] });
  expect(summaryOf(low, null, false)).toBe('2 points; band: 95 % CI');
  expect(summaryOf(low, null, true)).toBe('2 points; values ≤ 0 are not shown on a log scale; band: 95 % CI');
});
