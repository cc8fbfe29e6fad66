import { expect, it } from 'vitest';
import { moved, ordered, toggled } from './arrangement';

it('puts what was moved first and leaves the rest as it comes', () => {
  expect(ordered(['a', 'b', 'c', 'd'], ['c', 'a'])).toEqual(['c', 'a', 'b', 'd']);
});

it('moves a chart past its neighbour and no further than the end', () => {
  const order = moved([], ['a', 'b', 'c'], 'c', -1);
  expect(ordered(['a', 'b', 'c'], order)).toEqual(['a', 'c', 'b']);
  expect(moved(order, ['a', 'c', 'b'], 'a', -1)).toBe(order);
  expect(moved(['x', 'y'], ['a', 'b'], 'a', 1)).toEqual(['x', 'y', 'b', 'a']);
});

it('takes a name in and out', () => {
  expect(toggled(toggled(['a'], 'b'), 'a')).toEqual(['b']);
});
