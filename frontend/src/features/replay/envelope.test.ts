import { describe, expect, it } from 'vitest';
import { envelope, range, stepAt, timeOf } from './envelope';

describe('envelope', () => {
  it('keeps the one spike among a thousand values', () => {
    const values = new Array<number>(1000).fill(0);
    values[517] = 9;
    const { low, high } = envelope(values, 10);
    expect(Array.from(high)).toEqual([0, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
    expect(Array.from(low)).toEqual(new Array(10).fill(0));
  });

  it('repeats values where there are more columns than values', () => {
    expect(Array.from(envelope([1, 2], 4).low)).toEqual([1, 1, 2, 2]);
  });

  it('passes over NaN', () => {
    const { low, high } = envelope([NaN, 3, NaN, 1], 1);
    expect([low[0], high[0]]).toEqual([1, 3]);
  });
});

describe('range', () => {
  it('spans the values', () => expect(range([3, -1, 2])).toEqual([-1, 3]));
  it('gives a flat line room', () => expect(range([2, 2])).toEqual([1.5, 2.5]));
  it('is 0 to 1 for nothing', () => expect(range([])).toEqual([0, 1]));
});

describe('video time and decisions', () => {
  it('is each other’s inverse', () => {
    for (let step = 0; step < 37; step += 1) expect(stepAt(timeOf(step, 12.3, 37), 12.3, 37)).toBe(step);
  });
  it('stays within the episode', () => {
    expect(stepAt(99, 10, 5)).toBe(4);
    expect(stepAt(-1, 10, 5)).toBe(0);
    expect(stepAt(1, NaN, 5)).toBe(0);
  });
});
