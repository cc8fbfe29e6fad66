import { expect, test } from 'vitest';
import { styles } from './colours';

const id = (number: number): string => String(number).padStart(26, '0');

test('looks are those of the figures', () => {
  // Of tests/backend/figures/test_curve.py; the first, second and fourth ask for the same.
  const looks = styles([0, 8, 1, 13].map(id), 'light');
  expect([...looks.values()].map(({ colour }) => colour)).toEqual([
    '#56b4e9',
    '#6b5d00',
    '#009e73',
    '#333333',
  ]);
});

test('no colour comes twice before each has come once', () => {
  const ids = Array.from({ length: 32 }, (_, number) => id(number));
  const looks = [...styles(ids, 'dark').values()];
  expect(new Set(looks.slice(0, 8).map(({ colour }) => colour)).size).toBe(8);
  expect(new Set(looks.map(({ colour, dash }) => `${colour} ${dash}`)).size).toBe(32);
  expect(styles(ids.slice(0, 9), 'dark').get(id(8))).toEqual(looks[8]);
});
