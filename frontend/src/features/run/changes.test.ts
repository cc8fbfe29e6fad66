import { expect, it } from 'vitest';
import type { MetricChange } from '@/api/runResources';
import { howMuch, isSmall } from './changes';

const CHANGE: MetricChange = {
  metric: 'loss/entropy',
  title: 'Policy entropy',
  unit: '',
  of_machine: false,
  before: 1,
  inside: 1,
  score: 0,
  was_constant: false,
  becomes_not_finite: false,
};

it.each([
  [{ before: 0.1, inside: 3, score: 40 }, '× 30'],
  [{ before: 1.2, inside: 0.12, score: -9 }, '÷ 10'],
  [{ before: 100, inside: 130, score: 4.21 }, '+4.2 σ'],
  [{ before: -1, inside: 2, score: -3.5 }, '−3.5 σ'],
  [{ before: 0, inside: 2, score: 7 }, '+7 σ'],
  [{ score: null, was_constant: true }, 'was constant'],
  [{ inside: null, score: null, becomes_not_finite: true }, 'not finite any more'],
])('howMuch(%o) is %s', (change, text) => {
  expect(howMuch({ ...CHANGE, ...change })).toBe(text);
});

it('a change is small within two robust standard deviations, or a twentieth of the median', () => {
  expect(isSmall({ ...CHANGE, inside: 2, score: -1.9 })).toBe(true);
  expect(isSmall({ ...CHANGE, inside: 2, score: -2.1 })).toBe(false);
  expect(isSmall({ ...CHANGE, before: 426.7, inside: 427.9, score: 200 })).toBe(true);
  expect(isSmall({ ...CHANGE, score: null, was_constant: true })).toBe(false);
});
