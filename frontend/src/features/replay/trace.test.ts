import { describe, expect, it } from 'vitest';
import { discountedReturns, readableAction } from './trace';

describe('discountedReturns', () => {
  it('sums the following rewards, discounted by gamma per step', () => {
    expect(Array.from(discountedReturns([0, 0, 1], 0.5, null))).toEqual([0.25, 0.5, 1]);
  });

  it('clips the rewards like the learner', () => {
    expect(Array.from(discountedReturns([-5, 7], 1, 1))).toEqual([0, 1]);
  });
});

describe('readableAction', () => {
  it.each([
    ['NOOP', 'no-op'],
    ['UPRIGHTFIRE', 'up right fire'],
    ['forward_look_left', 'forward, look left'],
    ['look_right', 'look right'],
    ['move_backward', 'move backward'],
    ['Push cart to the left', 'push cart to the left'],
  ])('names %s "%s"', (name, readable) => expect(readableAction(name)).toBe(readable));
});
