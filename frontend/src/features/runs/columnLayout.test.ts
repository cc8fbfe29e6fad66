import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  columnsOf,
  DEFAULT_LAYOUT,
  fromParameter,
  leastWidth_px,
  minWidth_px,
  moved,
  resized,
  toggled,
  toParameter,
  useColumns,
} from './columnLayout';
import { offeredColumns } from './ColumnMenu';
import type { RunField } from '@/api/runFields';

const field = (name: string, title: string, origin: RunField['origin']): RunField => ({
  name,
  title,
  origin,
  kind: 'number',
  unit: null,
  values: [],
});

const FIELDS = [
  field('score', 'Score', 'run'),
  field('config.learning_rate', 'Learning rate', 'setting'),
  field('loss/value', 'Value loss', 'metric'),
];

describe('the columns of the list', () => {
  it('fit beside the navigation of a window 1280 pixels wide, with a scroll bar', () => {
    const [navigation, padding, border, scrollBar] = [88, 48, 2, 15];
    expect(leastWidth_px(columnsOf(DEFAULT_LAYOUT, []))).toBeLessThanOrEqual(
      1280 - navigation - padding - border - scrollBar,
    );
  });

  it('are added, moved, resized and removed', () => {
    let layout = toggled(DEFAULT_LAYOUT, 'config.learning_rate');
    expect(layout.shown.indexOf('config.learning_rate')).toBe(layout.shown.indexOf('progress') - 1);
    layout = moved(layout, 'config.learning_rate', 2);
    expect(layout.shown.slice(0, 3)).toEqual(['state', 'name', 'config.learning_rate']);
    layout = resized(layout, 'config.learning_rate', 150.4);
    const column = columnsOf(layout, FIELDS)[2];
    expect(column?.title).toBe('Learning rate');
    expect(column && minWidth_px(column)).toBe(150);
    expect(toggled(layout, 'config.learning_rate').shown).not.toContain('config.learning_rate');
  });

  it('keep state, name and actions, and leave out what is not a column', () => {
    const ids = columnsOf({ shown: ['nonsense', 'loss/value.mean'], widths: {} }, FIELDS).map(({ id }) => id);
    expect(ids).toEqual(['state', 'name', 'loss/value.mean', 'actions']);
  });

  it('are the same from the address, with widths and any name', () => {
    const layout = resized(toggled(DEFAULT_LAYOUT, 'config.a,b: 3'), 'name', 220);
    expect(toParameter(layout)).toContain('name:220px');
    expect(fromParameter(toParameter(layout))).toEqual(layout);
    expect(fromParameter('name,name:9px,loss/value')).toEqual({
      shown: ['name', 'name:9px', 'loss/value'],
      widths: {},
    });
  });

  it('are wide enough to be seen however small they are dragged', () =>
    expect(resized(DEFAULT_LAYOUT, 'name', -50).widths.name).toBe(36));
});

describe('offeredColumns', () => {
  const offered = (typed: string) => offeredColumns(DEFAULT_LAYOUT, FIELDS, typed).map(({ id }) => id);

  it('finds settings and statistics of metrics by words of their names', () => {
    expect(offered('learning')).toEqual(['config.learning_rate']);
    expect(offered('value mean')).toEqual(['loss/value.mean']);
    expect(offered('loss/value.min')).toEqual(['loss/value.min']);
    expect(offered('value')).not.toContain('loss/value.min');
  });
  it('finds shown columns as well, but lists only the others unasked', () => {
    expect(offered('score')).toEqual(['score']);
    expect(offered('')).not.toContain('score');
  });
});

describe('useColumns', () => {
  afterEach(() => {
    cleanup();
    localStorage.clear();
    vi.useRealTimers();
  });

  it('shows a change immediately, and writes many of them to the address once', () => {
    vi.useFakeTimers();
    const written = vi.fn();
    const { result, rerender } = renderHook(
      ({ parameter }: { parameter: string | undefined }) => useColumns(FIELDS, parameter, written),
      { initialProps: { parameter: undefined as string | undefined } },
    );
    for (let width = 200; width <= 260; width += 1)
      act(() => result.current.setLayout(resized(result.current.layout, 'name', width)));
    expect(result.current.layout.widths).toEqual({ name: 260 });
    expect(written).not.toHaveBeenCalled();
    act(() => void vi.runAllTimers());
    const address = toParameter(resized(DEFAULT_LAYOUT, 'name', 260));
    expect(written.mock.calls).toEqual([[address]]);
    rerender({ parameter: address });
    expect(result.current.layout.widths).toEqual({ name: 260 });
    act(() => result.current.setLayout(null));
    act(() => void vi.runAllTimers());
    expect(written).toHaveBeenLastCalledWith(undefined);
  });

  it('prefers the columns of the address, and writes those of this browser to one without', () => {
    const written = vi.fn();
    localStorage.setItem(
      'callboard-run-table',
      JSON.stringify({ shown: ['state', 'name', 'age'], widths: {} }),
    );
    const ids = (parameter: string | undefined) =>
      renderHook(() => useColumns(FIELDS, parameter, written)).result.current.columns.map(({ id }) => id);
    expect(ids('state,name,score')).toEqual(['state', 'name', 'score', 'actions']);
    expect(written).not.toHaveBeenCalled();
    expect(ids(undefined)).toEqual(['state', 'name', 'age', 'actions']);
    expect(written).toHaveBeenCalledWith('state,name,age');
  });
});
