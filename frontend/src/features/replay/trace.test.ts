import { describe, expect, it } from 'vitest';
import { discountedReturns, readableAction, type Learner } from './trace';

const returnsOf = (
  rewards: number[],
  learner: Learner,
  lives = rewards.map(() => 0),
  bootstrap: number | null = null,
): number[] => Array.from(discountedReturns(rewards, lives, learner, bootstrap));

describe('discountedReturns', () => {
  it('sums the following rewards, discounted by gamma per step', () => {
    expect(returnsOf([0, 0, 1], { gamma: 0.5, clip: null, isPerLife: false })).toEqual([0.25, 0.5, 1]);
  });

  it('clips the rewards like the learner', () => {
    expect(returnsOf([-5, 7], { gamma: 1, clip: 1, isPerLife: false })).toEqual([0, 1]);
  });

  it('ends with the life of a learner of single lives', () => {
    const learner = { gamma: 0.5, clip: null, isPerLife: true };
    expect(returnsOf([1, 1, 1, 1], learner, [2, 1, 1, 1])).toEqual([1.5, 1, 1.5, 1]);
    expect(returnsOf([1, 1, 1, 1], { ...learner, isPerLife: false }, [2, 1, 1, 1])[0]).toBe(1.875);
  });

  it('continues with the value of the last state where the episode was truncated', () => {
    const learner = { gamma: 0.5, clip: null, isPerLife: true };
    expect(returnsOf([1, 1], learner, [0, 0], 8)).toEqual([3.5, 5]);
    // No life is left after the last decision, which has lost none.
    expect(returnsOf([1, 1, 1], learner, [2, 2, 0], 8)).toEqual([2.75, 3.5, 5]);
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
