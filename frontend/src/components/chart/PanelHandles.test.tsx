import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, describe, expect, it } from 'vitest';
import { Grip, placementOf, ResizeHandle, usePanelDrop, type Placement } from './PanelHandles';
import { type PanelSize, SMALL } from './panelSize';

afterEach(cleanup);

function Panel({ name, placement }: { name: string; placement: Placement }) {
  const [preview, setPreview] = useState<PanelSize | null>(null);
  return (
    <li className="panel" aria-label={name} {...usePanelDrop(placement)}>
      <Grip name={name} title={name} placement={placement} />
      <span>{(preview ?? placement.size).columns}</span>
      <ResizeHandle
        title={name}
        size={preview ?? placement.size}
        onPreview={setPreview}
        onSize={placement.onSize}
      />
    </li>
  );
}

function Panels() {
  const [names, setNames] = useState<readonly string[]>(['a', 'b', 'c']);
  const [sizes, setSizes] = useState<Record<string, PanelSize>>({});
  return (
    <MantineProvider env="test">
      <ul>
        {names.map((name) => (
          <Panel
            key={name}
            name={name}
            placement={placementOf(names, name, sizes[name] ?? SMALL, setNames, (size) =>
              setSizes({ ...sizes, [name]: size }),
            )}
          />
        ))}
      </ul>
    </MantineProvider>
  );
}

const order = (): (string | null)[] =>
  screen.getAllByRole('listitem').map((item) => item.getAttribute('aria-label'));
const grip = (name: string): HTMLElement => screen.getByRole('button', { name: `Move ${name}` });
const corner = (name: string): HTMLElement =>
  screen.getByRole('button', { name: new RegExp(`^Resize ${name}:`) });

describe('a panel', () => {
  it('is dragged onto another one', () => {
    render(<Panels />);
    const dataTransfer = new DataTransfer();
    dataTransfer.setDragImage = () => undefined;
    fireEvent.dragStart(grip('a'), { dataTransfer });
    const target = screen.getByRole('listitem', { name: 'c' });
    fireEvent.dragOver(target, { dataTransfer });
    expect(target.dataset.over).toBe('true');
    fireEvent.drop(target, { dataTransfer });
    expect(order()).toEqual(['b', 'c', 'a']);
    expect(target.dataset.over).toBeUndefined();
  });

  it('ignores what is not a panel', () => {
    render(<Panels />);
    const dataTransfer = new DataTransfer();
    dataTransfer.setData('text/uri-list', 'http://localhost/runs/x');
    const target = screen.getByRole('listitem', { name: 'c' });
    fireEvent.dragOver(target, { dataTransfer });
    expect(target.dataset.over).toBeUndefined();
    fireEvent.drop(target, { dataTransfer });
    expect(order()).toEqual(['a', 'b', 'c']);
  });

  it('is moved with the arrow keys, keeps the focus, and stops at the ends', () => {
    render(<Panels />);
    grip('c').focus();
    fireEvent.keyDown(grip('c'), { key: 'ArrowLeft' });
    expect(order()).toEqual(['a', 'c', 'b']);
    expect(document.activeElement).toBe(grip('c'));
    fireEvent.keyDown(grip('c'), { key: 'ArrowLeft' });
    fireEvent.keyDown(grip('c'), { key: 'ArrowLeft' });
    expect(order()).toEqual(['c', 'a', 'b']);
    fireEvent.keyDown(grip('c'), { key: 'ArrowRight' });
    expect(order()).toEqual(['a', 'c', 'b']);
  });

  it('does not take the focus later if a key could not move it', () => {
    const { rerender } = render(<Panels />);
    grip('a').focus();
    fireEvent.keyDown(grip('a'), { key: 'ArrowLeft' });
    corner('b').focus();
    rerender(<Panels />);
    fireEvent.keyDown(corner('b'), { key: 'ArrowRight' });
    expect(document.activeElement).toBe(corner('b'));
  });

  it('is not resized by a click, nor in width by a drag down', () => {
    render(<Panels />);
    const handle = corner('a');
    handle.setPointerCapture = () => undefined;
    // A narrow page draws a panel of 4 columns over 6.
    Object.defineProperty(screen.getByRole('list'), 'clientWidth', { value: 600 });
    Object.defineProperty(screen.getByRole('listitem', { name: 'a' }), 'clientWidth', { value: 300 });
    const from = { clientX: 300, clientY: 300, button: 0, pointerId: 1 };
    fireEvent.pointerDown(handle, from);
    fireEvent.pointerUp(handle, from);
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 4 of 12 columns, 228 px high');
    fireEvent.pointerDown(handle, from);
    fireEvent.pointerMove(handle, { ...from, clientX: 310, clientY: 400 });
    fireEvent.pointerUp(handle, { ...from, clientX: 310, clientY: 400 });
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 4 of 12 columns, 328 px high');
  });

  it('is resized with the arrow keys', () => {
    render(<Panels />);
    fireEvent.keyDown(corner('b'), { key: 'ArrowRight' });
    fireEvent.keyDown(corner('b'), { key: 'ArrowDown' });
    expect(corner('b').getAttribute('aria-label')).toBe('Resize b: 6 of 12 columns, 268 px high');
    fireEvent.keyDown(corner('b'), { key: 'ArrowLeft' });
    expect(corner('b').getAttribute('aria-label')).toBe('Resize b: 4 of 12 columns, 268 px high');
  });

  it('is resized by dragging its corner; a cancelled drag changes nothing', () => {
    render(<Panels />);
    const handle = corner('a');
    handle.setPointerCapture = () => undefined;
    const list = screen.getByRole('list');
    Object.defineProperty(list, 'clientWidth', { value: 1200 });
    Object.defineProperty(screen.getByRole('listitem', { name: 'a' }), 'clientWidth', { value: 400 });
    const from = { clientX: 400, clientY: 300, button: 0, pointerId: 1 };
    fireEvent.pointerDown(handle, from);
    fireEvent.pointerMove(handle, { ...from, clientX: 590, clientY: 400 });
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 6 of 12 columns, 328 px high');
    fireEvent.pointerCancel(handle, from);
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 4 of 12 columns, 228 px high');
    fireEvent.pointerDown(handle, from);
    fireEvent.pointerUp(handle, { ...from, clientX: 1200 });
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 12 of 12 columns, 228 px high');
    fireEvent.pointerMove(handle, { ...from, clientX: 0 });
    expect(handle.getAttribute('aria-label')).toBe('Resize a: 12 of 12 columns, 228 px high');
  });
});
