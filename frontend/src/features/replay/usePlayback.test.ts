import { describe, expect, it } from 'vitest';
import { stepAt, timeOf } from './usePlayback';

describe('stepAt and timeOf', () => {
  it('are inverse to each other', () => {
    for (let step = 0; step < 37; step += 1) expect(stepAt(timeOf(step, 12.3, 37), 12.3, 37)).toBe(step);
  });
  it('stepAt stays within the episode', () => {
    expect(stepAt(99, 10, 5)).toBe(4);
    expect(stepAt(-1, 10, 5)).toBe(0);
    expect(stepAt(1, NaN, 5)).toBe(0);
  });
});
