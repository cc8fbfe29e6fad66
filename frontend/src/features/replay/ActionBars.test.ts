import { expect, it } from 'vitest';
import { rangeOfQ } from './ActionBars';

it('rangeOfQ returns the smallest and the largest Q and ignores missing values', () => {
  expect(
    rangeOfQ([
      [0.5, -2],
      [null, 3],
    ]),
  ).toEqual([-2, 3]);
});
