import { act, renderHook } from '@testing-library/react';
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
  it('toggles, extends and clears', () => {
    const { result } = renderHook(() => useSelection(ORDER));
    act(() => result.current.toggle('b'));
    act(() => result.current.toggle('d', true));
    expect([...result.current.ids]).toEqual(['b', 'c', 'd']);
    act(() => result.current.toggle('c'));
    expect([...result.current.ids]).toEqual(['b', 'd']);
    act(() => result.current.clear());
    expect(result.current.ids.size).toBe(0);
  });
});
