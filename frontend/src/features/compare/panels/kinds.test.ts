import { expect, it } from 'vitest';
import type { ViewDocument } from '@/api/views';
import { KINDS } from './kinds';

/** Every kind of the document of a view. */
const DECLARED: Record<ViewDocument['panels'][number]['kind'], true> = {
  lines: true,
  scatter: true,
  bars: true,
  strips: true,
  heatmap: true,
  importance: true,
  parallel: true,
  text: true,
  diff: true,
};

it('each kind of panel of a view has a file', () =>
  expect([...KINDS.keys()].toSorted()).toEqual(Object.keys(DECLARED).toSorted()));

it('kinds say why a panel cannot be shown', () => {
  expect(KINDS.get('text')?.refusal?.({ kind: 'text', text: ' ' })).toBe('Write a text.');
  expect(KINDS.get('text')?.refusal?.({ kind: 'text', text: 'a' })).toBeUndefined();
});
