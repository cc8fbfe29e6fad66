import { expect, it } from 'vitest';
import type { Chart, Curve } from '@/api/series';
import { sortedBySource, latestBySource, rangeOf } from './GorilaFigure';

const curve = (metric: string, source: string, last: Curve['last']): Curve =>
  ({ metric, source, last }) as unknown as Curve;

const chart = {
  series: [
    curve('gorila/episodes', 'actor 10', [3, 7]),
    curve('gorila/episodes', 'actor 9', [4, 5]),
    curve('gorila/episodes', 'actor 1', []),
    curve('loss/td', '', [0.5]),
    curve('loss/td', 'learner 0', [0.5, 'Infinity']),
  ],
} as unknown as Chart;

it('latestBySource returns the last value of each source that has one', () => {
  expect([...latestBySource(chart, 'gorila/episodes')]).toEqual([
    ['actor 10', 7],
    ['actor 9', 5],
  ]);
  expect([...latestBySource(chart, 'loss/td')]).toEqual([['', 0.5]]);
  expect(latestBySource(undefined, 'loss/td').size).toBe(0);
});

it('sortedBySource sorts by number, and rangeOf returns the smallest and the largest value', () => {
  const episodes = latestBySource(chart, 'gorila/episodes');
  expect(sortedBySource(episodes).map(([source]) => source)).toEqual(['actor 9', 'actor 10']);
  expect(rangeOf(episodes)).toEqual([5, 7]);
  expect(rangeOf(new Map())).toBeUndefined();
});
