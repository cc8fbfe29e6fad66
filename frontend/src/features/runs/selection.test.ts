import { act, renderHook } from '@testing-library/react';
import { useState } from 'react';
import { describe, expect, it } from 'vitest';
import { between, useSelection } from './selection';

const ORDER = ['a', 'b', 'c', 'd'];

describe('between', () => {
  it('goes either way', () => {
    expect(between(ORDER, 'b', 'd')).toEqual(['b', 'c', 'd']);
    expect(between(ORDER, 'd', 'b')).toEqual(['b', 'c', 'd']);
  });
  it('is the one row when the other is no longer shown', () =>
    expect(between(ORDER, 'x', 'b')).toEqual(['b']));
});

describe('useSelection', () => {
  const render = (start?: string) =>
    renderHook(() => {
      const [selected, setSelected] = useState(start);
      return { selected, ...useSelection(ORDER, selected, setSelected) };
    }).result;

  it('toggles, extends and clears', () => {
    const result = render();
    act(() => result.current.toggle('b'));
    act(() => result.current.toggle('d', true));
    expect(result.current.selected).toBe('b,c,d');
    act(() => result.current.toggle('c'));
    expect([...result.current.ids]).toEqual(['b', 'd']);
    act(() => result.current.extend('b', 'a'));
    expect(result.current.selected).toBe('b,d,a');
    act(() => result.current.setAll([]));
    expect(result.current.selected).toBeUndefined();
  });

  it('goes on from what it is given, even of rows that are not shown', () => {
    const result = render('a,elsewhere');
    expect(result.current.notShown).toBe(1);
    act(() => result.current.toggle('a'));
    expect(result.current.selected).toBe('elsewhere');
  });
});
