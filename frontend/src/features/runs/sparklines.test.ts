import { expect, it } from 'vitest';
import { sparkPath } from './sparklines';

it('sparkPath spans the box from the first value to the last', () => {
  expect(sparkPath([0, 5, 10], 20, 10)).toBe('M0.0 10.0L10.0 5.0L20.0 0.0');
});

it('sparkPath draws constant values along the bottom', () =>
  expect(sparkPath([3, 3], 20, 10)).toBe('M0.0 10.0L20.0 10.0'));

it('sparkPath is empty for a single point', () => expect(sparkPath([3], 20, 10)).toBe(''));
