import { expect, it } from 'vitest';
import type { GroupStatistics } from '@/api/comparisons';
import { formatEstimate, scaleOf, verdict } from './estimates';

const whole = (value: number): string => value.toFixed(0);

it('writes an estimate with its interval', () => {
  expect(formatEstimate({ value: 12, low: 10, high: 14 }, whole)).toBe('12 [10, 14]');
  expect(formatEstimate({ value: 12, low: 10, high: null }, whole)).toBe('12 [10, ∞]');
  expect(formatEstimate({ value: 12, low: null, high: null }, whole)).toBe('12');
  expect(formatEstimate({ value: null, low: null, high: null }, whole)).toBe('–');
  expect(formatEstimate(null, whole)).toBe('–');
});

it('scales to the widest interval, and passes over groups without a score', () => {
  const groups = [
    { iqm: { value: 5, low: 1, high: 7 } },
    { iqm: null },
    { iqm: { value: 9, low: null, high: null } },
  ];
  expect(scaleOf(groups as GroupStatistics[])).toEqual([1, 9]);
});

it.each([
  [0.6, 1, 'better, 95 % sure'],
  [0.5, 1, 'may be chance: more seeds would tell'],
  [0.1, 0.9, 'may be chance: more seeds would tell'],
  [0, 0.4, 'worse, 95 % sure'],
])('an interval from %f to %f is "%s"', (low, high, words) =>
  expect(verdict({ value: 0.5, low, high })).toBe(words),
);
