import { describe, expect, it } from 'vitest';
import { jumpsOf, markedOf, nextOf, snapped, valueErrors } from './jumps';
import type { Trace } from './trace';

const TRACE = {
  rewards: Float64Array.from([0, 1, 0, NaN, -1]),
  lives: [3, 3, 2, 2, 1],
} as unknown as Trace;

describe('jumpsOf', () => {
  it('finds rewards, lost lives and the largest error of either sign', () => {
    const errors = valueErrors([1, NaN, 5, 0, 0], [0, 0, 2, 4, 1]);
    expect(Array.from(errors)).toEqual([1, NaN, 3, -4, -1]);
    expect(jumpsOf(TRACE, errors)).toEqual({ rewards: [1, 4], lostLives: [2, 4], largestError: 3 });
  });

  it('has no largest error without returns or values', () => {
    expect(jumpsOf(TRACE, undefined).largestError).toBeNull();
    expect(jumpsOf(TRACE, valueErrors([NaN], [0])).largestError).toBeNull();
  });
});

describe('nextOf', () => {
  it('goes forwards and back, and around the end', () => {
    expect([nextOf([1, 4], 0), nextOf([1, 4], 1), nextOf([1, 4], 4)]).toEqual([1, 4, 1]);
    expect([nextOf([1, 4], 4, true), nextOf([1, 4], 1, true)]).toEqual([1, 4]);
    expect(nextOf([], 0)).toBeUndefined();
  });
});

it('marks no rewards where most steps have one, and no value error on a small timeline', () => {
  const jumps = { rewards: [1, 2, 3], lostLives: [2], largestError: 5 };
  expect(markedOf(jumps, 12, false)).toEqual(jumps);
  expect(markedOf(jumps, 11, true)).toEqual({ rewards: [], lostLives: [2], largestError: null });
});

it('snapped goes to the closest mark nearby, and otherwise stays', () => {
  const jumps = { rewards: [10, 40], lostLives: [13], largestError: 70 };
  expect([12, 11, 38, 72].map((step) => snapped(jumps, step, 2))).toEqual([13, 10, 40, 70]);
  expect(snapped(jumps, 37, 2)).toBe(37);
  expect(snapped({ rewards: [], lostLives: [], largestError: null }, 5, 2)).toBe(5);
});
