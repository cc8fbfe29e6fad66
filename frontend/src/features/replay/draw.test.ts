import { expect, it } from 'vitest';
import { lostLives } from './draw';

it('finds the decisions in which a life was lost', () => expect(lostLives([3, 3, 2, 2, 0])).toEqual([2, 4]));

it('finds none where lives are only won, or there are none', () => {
  expect(lostLives([1, 2, 3])).toEqual([]);
  expect(lostLives([])).toEqual([]);
});
