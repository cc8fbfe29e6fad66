import { expect, it } from 'vitest';
import { axisOf, within } from './axes';

it('places numbers linearly, those of a wide range by their logarithm, and texts in order', () => {
  expect(axisOf('a', 'A', [2, 4, 3]).places).toEqual([0, 1, 0.5]);
  const rates = axisOf('a', 'A', [1e-4, 1e-2, 1e-3, undefined]);
  expect(rates.places.map((place) => place && Number(place.toFixed(6)))).toEqual([0, 1, 0.5, undefined]);
  expect(rates.textAt(0.5)).toBe('0.001');
  const texts = axisOf('a', 'A', ['adam', 'sgd', 'rmsprop', true]);
  expect(texts.ticks.map(({ text }) => text)).toEqual(['adam', 'rmsprop', 'sgd', 'yes']);
  expect(axisOf('a', 'A', [7, 7]).places).toEqual([0.5, 0.5]);
});

it('keeps the rows within all ranges, and none without a value', () => {
  const axes = [axisOf('a', 'A', [0, 1, 2, 3]), axisOf('b', 'B', [3, 2, undefined, 0])];
  const inside = (ranges: [string, [number, number]][]) => within(axes, new Map(ranges), 4);
  expect(inside([])).toEqual([0, 1, 2, 3]);
  expect(inside([['a', [1 / 3, 1]]])).toEqual([1, 2, 3]);
  expect(
    inside([
      ['a', [1 / 3, 1]],
      ['b', [0.5, 1]],
    ]),
  ).toEqual([1]);
});
