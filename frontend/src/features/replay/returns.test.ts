import { expect, it } from 'vitest';
import { discounted } from './returns';

it('sums what follows, the later the less', () => {
  expect(Array.from(discounted([0, 0, 1], 0.5, null))).toEqual([0.25, 0.5, 1]);
});

it('clips rewards as the learner does', () => {
  expect(Array.from(discounted([-5, 7], 1, 1))).toEqual([0, 1]);
});
