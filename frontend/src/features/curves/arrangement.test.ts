import { expect, it } from 'vitest';
import { SMALL } from '@/components/chart/panelSize';
import { type Arrangement, matching, ordered, reordered, resized, sizeOf, toggled } from './arrangement';

it('ordered puts names of the order first and keeps the others as given', () => {
  expect(ordered(['a', 'b', 'c', 'd'], ['c', 'a'])).toEqual(['c', 'a', 'b', 'd']);
});

it('reordered keeps the order of names of other sections', () => {
  expect(reordered(['x', 'a', 'y'], ['b', 'a'])).toEqual(['x', 'y', 'b', 'a']);
});

it('resized keeps sizes by metric', () => {
  const before: Arrangement = { hidden: [], order: [] };
  const after = resized(before, 'a', { columns: 6, height: 300 });
  expect(sizeOf(after, 'a')).toEqual({ columns: 6, height: 300 });
  expect(sizeOf(resized(after, 'a', SMALL), 'a')).toEqual(SMALL);
  expect(sizeOf(after, 'b')).toEqual(SMALL);
});

it('toggled adds a missing name and removes a present one', () => {
  expect(toggled(toggled(['a'], 'b'), 'a')).toEqual(['b']);
});

it('matching finds the metrics with all typed words', () => {
  const names = ['eval/plain/mean_return', 'loss/value', 'rollout/episode_return'];
  expect(matching(names, 'RETURN mean')).toEqual(['eval/plain/mean_return']);
  expect(matching(names, ' ')).toEqual(names);
});
