import { describe, expect, it } from 'vitest';
import type { GroupStatistics, Improvement } from '@/api/comparisons';
import { differenceScaleOf, formatEstimate, formatP, scaleOf, verdict } from './Estimate';

describe('formatEstimate', () => {
  it.each([
    [{ value: 12, low: 10, high: 14 }, '12 [10, 14]'],
    [{ value: 12, low: 10, high: null }, '12 [10, ∞]'],
    [{ value: 12, low: null, high: null }, '12'],
    [{ value: null, low: null, high: null }, '–'],
    [null, '–'],
  ])('formats %j as "%s"', (estimate, text) =>
    expect(formatEstimate(estimate, (value) => value.toFixed(0))).toBe(text),
  );
});

describe('scaleOf', () => {
  it('spans all scores and intervals, and ignores groups without a score', () => {
    const groups = [
      { median: { value: 5, low: 1, high: 7 }, runs: [{ score: 5 }, { score: 2 }] },
      { median: null, runs: [{ score: null }] },
      { median: { value: 8, low: null, high: null }, runs: [{ score: 7 }, { score: 9 }] },
    ];
    expect(scaleOf(groups as GroupStatistics[])).toEqual([1, 9]);
  });
});

const pair = (more: Partial<Improvement>): Improvement =>
  ({ a: 'one', b: 'other', better: null, p_adjusted: 1, seeds_to_differ: null, ...more }) as Improvement;

it('differenceScaleOf is symmetric around 0', () => {
  const differences = [
    { value: 5, low: 1, high: 7 },
    { value: -9, low: null, high: null },
  ];
  expect(differenceScaleOf(differences.map((difference) => pair({ difference })))).toEqual([-9, 9]);
});

it.each([
  [1, 'p = 1.00'],
  [1 / 3, 'p = 0.33'],
  [2 / 70, 'p = 0.029'],
  [0.0499, 'p = 0.050'],
  [0.0001, 'p < 0.001'],
])('formatP(%f) is "%s"', (p, text) => expect(formatP(p)).toBe(text));

describe('verdict', () => {
  const groups = ['one', 'other'].map((id) => ({ id, n: 5 }) as GroupStatistics);
  it.each([
    [{ better: 'one', p_adjusted: 2 / 70 }, 'A better (p = 0.029)'],
    [{ better: 'other', p_adjusted: 0.0004 }, 'B better (p < 0.001)'],
    [{ p_adjusted: 0.21 }, 'no significant difference (p = 0.21)'],
    [
      { p_adjusted: 1, seeds_to_differ: 7 },
      'not decided: 5 seeds cannot reach p < 0.05 in 28 comparisons; 7 seeds per group could',
    ],
  ])('of %j is "%s"', (measured, text) => expect(verdict(pair(measured), groups, 28)).toBe(text));
});
