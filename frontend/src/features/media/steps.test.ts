import { expect, test } from 'vitest';
import { itemsAt, placeAt, unionOfSteps } from './steps';

test('steps of all media are united in order', () => {
  const series = (agent_steps: number[]) => ({ kind: 'image' as const, metric: 'a', agent_steps, ids: [] });
  expect(unionOfSteps([series([5, 20]), series([1, 5, 100])])).toEqual([1, 5, 20, 100]);
});

test('the latest item up to a step is shown, with all of its step, or the first', () => {
  const images = { agent_steps: [10, 20, 20, 30], ids: ['a', 'b', 'c', 'd'] };
  expect(itemsAt(images, 5)).toEqual({ at: 10, ids: ['a'] });
  expect(itemsAt(images, 29)).toEqual({ at: 20, ids: ['b', 'c'] });
  expect(itemsAt(images, 30)).toEqual({ at: 30, ids: ['d'] });
  expect(placeAt([], 5)).toBe(0);
});
