import { expect, it } from 'vitest';
import { rangeOfQ } from './QBars';

it('finds the least and the greatest Q and leaves out what was not finite', () => {
  expect(
    rangeOfQ([
      [0.5, -2],
      [null, 3],
    ]),
  ).toEqual([-2, 3]);
});
