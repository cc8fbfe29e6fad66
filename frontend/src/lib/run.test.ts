import { describe, expect, it } from 'vitest';
import { nextBound } from './run';

describe('nextBound', () => {
  it('returns the bound while it is not reached', () => expect(nextBound(100, 99)).toBe(100));
  it('adds the bound to a count that has reached it', () => expect(nextBound(100, 110.5)).toBe(211));
});
