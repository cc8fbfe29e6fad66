import { expect, it } from 'vitest';
import type { LogLine } from '@/api/runParts';
import { follow, MAX_LINES, type Lines } from './lines';

const lines = (from: number, count: number): LogLine[] =>
  Array.from({ length: count }, (_, index) => ({ id: from + index }) as LogLine);
const had = (count: number): Lines => ({ items: lines(0, count), older: false });

it('appends what is new', () => {
  expect(follow(had(2), lines(2, 2)).items.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
});

it('is the same object when nothing is new, so that nothing is drawn again', () => {
  const before = had(2);
  expect(follow(before, [])).toBe(before);
});

it('forgets the oldest lines and says that there are some', () => {
  const after = follow(had(MAX_LINES), lines(MAX_LINES, 10));
  expect(after.items).toHaveLength(MAX_LINES);
  expect(after.items[0]?.id).toBe(10);
  expect(after.older).toBe(true);
});
