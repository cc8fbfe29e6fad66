import { describe, expect, it } from 'vitest';
import { nextBound, stepsTitle } from './run';

describe('nextBound', () => {
  it('returns the bound while it is not reached', () => expect(nextBound(100, 99)).toBe(100));
  it('adds the bound to a count that has reached it', () => expect(nextBound(100, 110.5)).toBe(211));
});

describe('stepsTitle', () => {
  const [steps, iterations] = [{ step_unit: 'agent_steps' }, { step_unit: 'iterations' }];
  it('names agent steps, iterations, or both', () => {
    expect(stepsTitle([])).toBe('Agent steps');
    expect(stepsTitle([steps, steps])).toBe('Agent steps');
    expect(stepsTitle([iterations])).toBe('Iterations');
    expect(stepsTitle([iterations, steps])).toBe('Agent steps or iterations');
  });
});
