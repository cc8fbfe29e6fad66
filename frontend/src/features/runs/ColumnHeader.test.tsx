import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ColumnHeader } from './ColumnHeader';
import type { Column } from './columns';

afterEach(cleanup);

const column = (id: string): Column => ({ id, title: id, sort: id, width: '120px' }) as unknown as Column;
const onSort = vi.fn();
const onResize = vi.fn();
const onMove = vi.fn();

beforeEach(() => {
  vi.resetAllMocks();
});

function show(sort = ''): void {
  render(
    <div role="row">
      {['score', 'frames'].map((id, index) => (
        <ColumnHeader
          key={id}
          column={column(id)}
          index={index}
          sort={sort}
          onSort={onSort}
          onResize={onResize}
          onMove={onMove}
        />
      ))}
    </div>,
  );
}

const header = (name: string): HTMLElement => screen.getByRole('columnheader', { name });

describe('ColumnHeader', () => {
  it.each([
    ['-score', 'score', 'descending'],
    ['score', '-score', 'ascending'],
  ])('reverses the order %s', (sort, to, direction) => {
    show(sort);
    expect(header('score').getAttribute('aria-sort')).toBe(direction);
    fireEvent.click(screen.getByRole('button', { name: 'score' }));
    expect(onSort).toHaveBeenCalledWith(to);
  });

  it('moves its column by Alt and an arrow, not by the arrow alone', () => {
    show();
    const button = screen.getByRole('button', { name: 'score' });
    fireEvent.keyDown(button, { key: 'ArrowRight' });
    expect(onMove).not.toHaveBeenCalled();
    fireEvent.keyDown(button, { key: 'ArrowRight', altKey: true });
    expect(onMove).toHaveBeenCalledWith('score', 1);
  });

  it('moves the column that is dropped on it to its place', () => {
    show();
    const dataTransfer = new DataTransfer();
    fireEvent.dragStart(header('frames'), { dataTransfer });
    expect(fireEvent.dragOver(header('score'), { dataTransfer })).toBe(false);
    fireEvent.drop(header('score'), { dataTransfer });
    expect(onMove).toHaveBeenCalledWith('frames', 0);
  });

  it('takes no other drop', () => {
    show();
    const dataTransfer = new DataTransfer();
    dataTransfer.setData('text/plain', 'frames');
    expect(fireEvent.dragOver(header('score'), { dataTransfer })).toBe(true);
    fireEvent.drop(header('score'), { dataTransfer });
    expect(onMove).not.toHaveBeenCalled();
  });

  it.each([
    ['ArrowRight', 12],
    ['ArrowLeft', -12],
  ])('is resized by %s on its edge', (key, px) => {
    show();
    const edge = screen.getByRole('separator', { name: 'Width of score' });
    expect(edge.tabIndex).toBe(-1);
    fireEvent.keyDown(edge, { key });
    expect(onResize).toHaveBeenCalledWith('score', px);
    onResize.mockClear();
    fireEvent.keyDown(screen.getByRole('button', { name: 'score' }), { key, shiftKey: true });
    expect(onResize).toHaveBeenCalledWith('score', px);
  });
});
