import { expect, it } from 'vitest';
import { compareNames, joinNames, splitNames } from './names';

it('keeps any names apart', () => {
  const names = ['loss/policy', 'a,b', 'a', 'b', '100%', '%2C', '%25', '奖励/平均', 'train loss (%)'];
  expect(splitNames(joinNames(names))).toEqual(names);
});

it('compareNames orders numbers by their values', () => {
  const names = [
    'nₑ 8',
    'lr 1M',
    'lr 0.001 · clip 0.2',
    'lr 0.001',
    'lr 9k',
    'lr 2e-4',
    'lr -1',
    'lr 0.001 · clip 0.1',
  ];
  expect(names.toSorted(compareNames)).toEqual([
    'lr -1',
    'lr 2e-4',
    'lr 0.001',
    'lr 0.001 · clip 0.1',
    'lr 0.001 · clip 0.2',
    'lr 9k',
    'lr 1M',
    'nₑ 8',
  ]);
});
