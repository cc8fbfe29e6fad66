import { expect, it } from 'vitest';
import {
  distinctStyles,
  formatGroupStyles,
  formatRunStyles,
  parseGroupStyles,
  parseRunStyles,
  restyled,
  searchOfStyle,
  styleParameters,
} from './seriesStyles';

const given = (styles: ReadonlyMap<string, number>) => Object.fromEntries(styles);

it('series get the styles that they want, or the first free ones, in the order of entry', () => {
  expect(given(distinctStyles(['b', 'a', 'b', 'c']))).toEqual({ b: 0, a: 1, c: 2 });
  const wanted = new Map(Object.entries({ a: 1, c: 1, d: 0 }));
  expect(given(distinctStyles(['a', 'b', 'c', 'd'], wanted))).toEqual({ a: 1, b: 2, c: 3, d: 0 });
  expect(given(distinctStyles(['a', 'b'], new Map(Object.entries({ a: 100, b: -1 }))))).toEqual({
    a: 0,
    b: 1,
  });
});

it('of a hundred series, some with a style of their own, no two have the same', () => {
  const keys = Array.from({ length: 100 }, (_, at) => `${at}`);
  for (let seed = 1; seed <= 100; seed += 1) {
    const wanted = new Map(keys.map((key, at) => [key, (at * at * seed) % 137]));
    expect(new Set(distinctStyles(keys, wanted).values()).size).toBe(100);
  }
});

it('the style of a run stands in the address of its page where it is not the first', () => {
  expect([undefined, 0, 3, 99, 100].map(searchOfStyle)).toEqual([
    {},
    {},
    { style: '3' },
    { style: '99' },
    {},
  ]);
});

it('the styles of runs stand in the address only where they are not those of their order', () => {
  const styles = parseRunStyles(['a', 'b', 'c'], undefined);
  expect(formatRunStyles(styles)).toBe('');
  const changed = restyled(styles, 'a', 4);
  expect(formatRunStyles(changed)).toBe('4,1,2');
  expect(given(parseRunStyles(['a', 'b', 'c'], '4,1,2'))).toEqual(given(changed));
  // The others keep theirs, and a further run gets the first free one.
  expect(formatRunStyles(distinctStyles(['b', 'c', 'd'], changed))).toBe('1,2,0');
  expect(given(parseRunStyles(['a', 'b'], '7,x'))).toEqual({ a: 7, b: 0 });
});

it('a style that another has is exchanged', () => {
  expect(given(restyled(distinctStyles(['a', 'b', 'c']), 'a', 2))).toEqual({ a: 2, b: 1, c: 0 });
});

it('the styles of groups stand in the address with their ids', () => {
  const wanted = parseGroupStyles('0f3c:3,,damaged:12,x:y,z:100');
  expect(given(wanted)).toEqual({ '0f3c': 3, damaged: 12 });
  expect(formatGroupStyles(wanted)).toBe('0f3c:3,damaged:12');
});

it('styles that are not the default are parameters of a request', () => {
  expect(styleParameters(distinctStyles(['a', 'b']))).toEqual({});
  expect(styleParameters(parseRunStyles(['a', 'b'], '2,0'))).toEqual({ style: [2, 0] });
  expect(styleParameters(new Map(), new Map([['g', 3]]))).toEqual({ group_style: ['g:3'] });
});
