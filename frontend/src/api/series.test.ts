import { expect, it } from 'vitest';
import { rangeParameters } from './series';

it('rangeParameters fetches a zoom with its width on either side, at the same resolution', () => {
  expect(rangeParameters([1000, 1500], 400)).toEqual({ points: 1200, x_from: 500, x_to: 2000 });
  expect(rangeParameters([100, 600], 400)).toEqual({ points: 1200, x_from: 0, x_to: 1100 });
  expect(rangeParameters(null, 400)).toEqual({ points: 400 });
});
