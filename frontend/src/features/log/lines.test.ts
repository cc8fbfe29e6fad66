import { expect, it } from 'vitest';
import type { LogLine } from '@/api/runResources';
import { appendLines, MAX_LINES, type Lines } from './lines';

const lines = (from: number, count: number): LogLine[] =>
  Array.from({ length: count }, (_, index) => ({ id: from + index }) as LogLine);
const previous = (count: number): Lines => ({ items: lines(0, count), older: false });

it('appendLines appends new lines', () => {
  expect(appendLines(previous(2), lines(2, 2)).items.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
});

it('appendLines returns the same object when there are no new lines', () => {
  const before = previous(2);
  expect(appendLines(before, [])).toBe(before);
});

it('appendLines drops the oldest lines beyond the maximum and reports older ones', () => {
  const after = appendLines(previous(MAX_LINES), lines(MAX_LINES, 10));
  expect(after.items).toHaveLength(MAX_LINES);
  expect(after.items[0]?.id).toBe(10);
  expect(after.older).toBe(true);
});
