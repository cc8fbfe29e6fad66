import { expect, test } from 'vitest';
import type { Chart, Curve } from '@/api/series';
import { inOrder, newest, rangeOf } from './newest';

const curve = (metric: string, source: string, last: (number | null)[]): Curve =>
  ({ metric, source, last }) as unknown as Curve;

const chart = {
  series: [
    curve('gorila/episodes', 'actor 10', [3, 7]),
    curve('gorila/episodes', 'actor 9', [4, 5]),
    curve('gorila/episodes', 'actor 1', []),
    curve('loss/td', '', [0.5]),
  ],
} as unknown as Chart;

test('the newest of each part', () => {
  expect([...newest(chart, 'gorila/episodes')]).toEqual([
    ['actor 10', 7],
    ['actor 9', 5],
  ]);
  expect(newest(chart, 'loss/td').get('')).toBe(0.5);
  expect(newest(undefined, 'loss/td').size).toBe(0);
});

test('parts come by their number, and have a range', () => {
  const episodes = newest(chart, 'gorila/episodes');
  expect(inOrder(episodes).map(([source]) => source)).toEqual(['actor 9', 'actor 10']);
  expect(rangeOf(episodes)).toEqual([5, 7]);
  expect(rangeOf(new Map())).toBeUndefined();
});
