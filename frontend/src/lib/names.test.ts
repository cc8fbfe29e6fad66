import { expect, it } from 'vitest';
import { joinNames, splitNames } from './names';

it('keeps any names apart', () => {
  const names = ['loss/policy', 'a,b', 'a', 'b', '100%', '%2C', '%25', '奖励/平均', 'train loss (%)'];
  expect(splitNames(joinNames(names))).toEqual(names);
});
