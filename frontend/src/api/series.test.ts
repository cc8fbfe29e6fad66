import { expect, it } from 'vitest';
import { formatX, rangeParameters } from './series';

it('rangeParameters fetches a zoom with its width on either side, at the same resolution', () => {
  expect(rangeParameters([1000, 1500], 400)).toEqual({ points: 1200, x_from: 500, x_to: 2000 });
  expect(rangeParameters([100, 600], 400)).toEqual({ points: 1200, x_from: 0, x_to: 1100 });
  expect(rangeParameters(null, 400)).toEqual({ points: 400 });
});

it('formatX names what the axis counts', () => {
  expect(formatX('agent_steps', 1000)).toBe('Agent steps 1,000');
  expect(formatX('iterations', 20)).toBe('Iterations 20');
  expect(formatX('seconds', 20)).toBe('Seconds of its script 20 s');
  expect(formatX('clock_time_s', 60)).toBe('Clock time 60 s');
});
