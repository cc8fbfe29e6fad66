import { expect, it } from 'vitest';
import type { Comparison } from '@/api/comparisons';
import { hiddenOf, type Row, rowsOfGroups, sorted } from './rows';

const row = (id: string, score: number | null, more: Partial<Row> = {}): Row => ({
  id,
  name: id,
  label: id,
  score,
  isEarly: false,
  scores: [],
  isBroken: false,
  runs: [],
  ...more,
});
const idsOf = (rows: readonly Row[]): string => rows.map(({ id }) => id).join('');

it('rows without a score stand last in both directions, those that broke off or are early below the others', () => {
  const rows = [
    row('a', 1),
    row('b', null),
    row('c', 3),
    row('d', 9, { isBroken: true }),
    row('e', 8, { isEarly: true }),
  ];
  expect(idsOf(sorted(rows, '-score'))).toBe('cabed');
  expect(idsOf(sorted(rows, 'score'))).toBe('acbed');
  // Pinned ones stand on top in either order.
  expect(idsOf(sorted(rows, '-score', new Set(['d', 'a'])))).toBe('adcbe');
});

it('the best six are drawn at first, and later what the address says', () => {
  const rows = Array.from('abcdefgh', (id, at) => row(id, at, { isBroken: id === 'h' }));
  expect([...hiddenOf(rows, undefined)].join('')).toBe('ah');
  expect([...hiddenOf(rows, 'none')]).toEqual([]);
  expect([...hiddenOf(rows, 'b,c')].join('')).toBe('bc');
  expect(hiddenOf(rows.slice(0, 6), undefined).size).toBe(0);
});

it('a config that is drawn has the numbers of the comparison of what is drawn', () => {
  const group = (id: string, iqm: number) => ({
    id,
    name: id,
    iqm: { value: iqm, low: null, high: null },
    n_broken_off: 0,
    runs: [
      { run: 'r', score: iqm, counted: true, left_out: null },
      { run: 's', score: 0, counted: false, left_out: 'broke_off' },
      { run: 't', score: 0, counted: false, left_out: 'repeated' },
    ],
  });
  const all = { groups: [group('a', 1), group('b', 2)] } as unknown as Comparison;
  const drawn = { groups: [group('a', 3)] } as unknown as Comparison;
  const [a, b] = rowsOfGroups(all, drawn, []);
  expect([a?.score, b?.score]).toEqual([3, 2]);
  expect(a).toMatchObject({ scores: [3], seeds: { counted: 1, all: 2 } });
});
