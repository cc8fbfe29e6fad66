import { describe, expect, it } from 'vitest';
import { formatSizes, LARGE, movedTo, nearestSize, parseSizes, SMALL, steppedSize } from './panelSize';

describe('sizes', () => {
  it('snap to a width of the grid and stay within bounds', () => {
    expect(nearestSize(6.9, 301)).toEqual({ columns: 6, height: 300 });
    expect(nearestSize(0, 10)).toEqual({ columns: 3, height: 160 });
    expect(nearestSize(99, 9_999)).toEqual({ columns: 12, height: 800 });
  });

  it('grow and shrink in steps up to their bounds', () => {
    expect(steppedSize(SMALL, 1, 0)).toEqual({ columns: 6, height: 228 });
    expect(steppedSize(SMALL, -1, 1)).toEqual({ columns: 3, height: 268 });
    expect(steppedSize(steppedSize(SMALL, -1, -1), -1, -9)).toEqual({ columns: 3, height: 160 });
    expect(steppedSize(LARGE, 1, 0)).toEqual(LARGE);
  });

  it('survive the way through the address; invalid ones are left out', () => {
    const sizes = new Map([
      ['loss/value', { columns: 6, height: 400 }],
      ['a:b', LARGE],
    ]);
    expect(parseSizes(formatSizes(sizes))).toEqual(sizes);
    expect(parseSizes('loss/value,x:6,:6x400,y:ax9').size).toBe(0);
    expect(parseSizes(undefined).size).toBe(0);
  });
});

it('movedTo puts a name at the place of another, in both directions', () => {
  expect(movedTo(['a', 'b', 'c'], 'a', 'c')).toEqual(['b', 'c', 'a']);
  expect(movedTo(['a', 'b', 'c'], 'c', 'a')).toEqual(['c', 'a', 'b']);
  const names = ['a', 'b'];
  expect(movedTo(names, 'a', 'x')).toBe(names);
  expect(movedTo(names, 'x', 'a')).toBe(names);
});
