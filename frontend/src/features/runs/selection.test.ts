import { act, cleanup, renderHook } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, describe, expect, it } from 'vitest';
import { between, useSelection } from './selection';

afterEach(cleanup);

const ORDER = ['a', 'b', 'c', 'd'];

describe('between', () => {
  it('returns the rows between two others in either direction', () => {
    expect(between(ORDER, 'b', 'd')).toEqual(['b', 'c', 'd']);
    expect(between(ORDER, 'd', 'b')).toEqual(['b', 'c', 'd']);
  });
  it('returns the target alone when the other row is not shown', () =>
    expect(between(ORDER, 'x', 'b')).toEqual(['b']));
});

describe('useSelection', () => {
  const render = (start?: string) =>
    renderHook(() => {
      const [selected, setSelected] = useState(start);
      return { selected, ...useSelection(ORDER, selected, setSelected) };
    }).result;

  it('toggles, extends and clears the selection', () => {
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

  it('selects everything that matches, except single rows', () => {
    const result = render();
    act(() => result.current.selectEverything());
    expect(result.current.selected).toBe('*');
    expect([result.current.has('a'), result.current.has('not loaded')]).toEqual([true, true]);
    act(() => result.current.toggle('b'));
    expect(result.current.selected).toBe('*,b');
    expect([...result.current.except]).toEqual(['b']);
    expect([result.current.has('a'), result.current.has('b')]).toEqual([true, false]);
    expect(result.current.notShown).toBe(0);
    act(() => result.current.toggle('b'));
    expect(result.current.selected).toBe('*');
    act(() => result.current.setAll([]));
    expect(result.current.any).toBe(false);
  });

  it('keeps and counts selected rows that are not shown', () => {
    const result = render('a,elsewhere');
    expect(result.current.notShown).toBe(1);
    act(() => result.current.toggle('a'));
    expect(result.current.selected).toBe('elsewhere');
  });
});
