import { Menu } from '@mantine/core';
import { IconArrowsDiagonal2, IconGripVertical } from '@tabler/icons-react';
import { type DragEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import classes from './curves.module.css';
import {
  GRID_COLUMNS,
  LARGE,
  movedTo,
  nearestSize,
  type PanelSize,
  sameSize,
  SMALL,
  steppedSize,
} from './panelSize';

const PANEL = 'application/x-callboard-panel';

/** Where a panel is in a grid of panels, and what moves and resizes it. */
export type Placement = {
  size: PanelSize;
  onSize: (size: PanelSize) => void;
  /** By one place; undefined where there is no further one. */
  onForward: (() => void) | undefined;
  onBack: (() => void) | undefined;
  /** Moves another panel to this one's place. */
  onDropped: (name: string) => void;
};

/** How the panel `name` is moved among `names` and resized. */
export function placementOf(
  names: readonly string[],
  name: string,
  size: PanelSize,
  onNames: (names: readonly string[]) => void,
  onSize: (size: PanelSize) => void,
): Placement {
  const at = names.indexOf(name);
  const move = (moved: string, place: string): void => {
    const next = movedTo(names, moved, place);
    if (next !== names) onNames(next);
  };
  const to = (place: string | undefined) => (place === undefined ? undefined : () => move(name, place));
  return {
    size,
    onSize,
    onForward: to(names[at - 1]),
    onBack: to(names[at + 1]),
    onDropped: (dropped) => move(dropped, name),
  };
}

/** Items of a chart's menu, for those who do not drag. */
export function PlacementItems({ placement }: { placement: Placement }) {
  const { size, onSize, onForward, onBack } = placement;
  const isLarge = size.columns === LARGE.columns;
  return (
    <>
      <Menu.Item onClick={() => onSize(isLarge ? SMALL : LARGE)}>{isLarge ? 'Small' : 'Large'}</Menu.Item>
      <Menu.Item disabled={!onForward} onClick={onForward}>
        Move forward
      </Menu.Item>
      <Menu.Item disabled={!onBack} onClick={onBack}>
        Move back
      </Menu.Item>
    </>
  );
}

/** Props of a panel on which others are dropped. */
export function usePanelDrop(placement: Placement | undefined) {
  const [over, setOver] = useState(false);
  if (!placement) return {};
  return {
    'data-over': over || undefined,
    onDragOver: (event: DragEvent): void => {
      if (!event.dataTransfer.types.includes(PANEL)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: ({ currentTarget, relatedTarget }: DragEvent): void => {
      if (!currentTarget.contains(relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent): void => {
      setOver(false);
      const name = event.dataTransfer.getData(PANEL);
      if (!name) return;
      event.preventDefault();
      placement.onDropped(name);
    },
  };
}

type GripProps = { name: string; title: string; placement: Placement };

/** Moves its panel: it is dragged onto another one, or moved with the arrow keys. */
export function Grip({ name, title, placement }: GripProps) {
  const button = useRef<HTMLButtonElement>(null);
  const moved = useRef(false);
  useEffect(() => {
    // The browser takes the focus from an element that changes its place.
    if (moved.current) button.current?.focus();
    moved.current = false;
  });
  return (
    <button
      ref={button}
      type="button"
      draggable
      className={classes.grip}
      aria-label={`Move ${title}`}
      title="Drag to move, or use the arrow keys"
      onDragStart={({ dataTransfer, currentTarget }) => {
        dataTransfer.setData(PANEL, name);
        dataTransfer.effectAllowed = 'move';
        const panel = currentTarget.closest('.panel');
        if (panel) dataTransfer.setDragImage(panel, 16, 16);
      }}
      onKeyDown={(event) => {
        const back = event.key === 'ArrowRight' || event.key === 'ArrowDown';
        if (!back && event.key !== 'ArrowLeft' && event.key !== 'ArrowUp') return;
        event.preventDefault();
        const move = back ? placement.onBack : placement.onForward;
        if (!move) return;
        moved.current = true;
        move();
      }}
    >
      <IconGripVertical size={14} aria-hidden="true" />
    </button>
  );
}

type ResizeProps = {
  title: string;
  size: PanelSize;
  /** Receives the size during a drag; null when it was cancelled. */
  onPreview: (size: PanelSize | null) => void;
  onSize: (size: PanelSize) => void;
};

type Origin = { x: number; y: number; width: number; size: PanelSize; column: number };

/** The columns of a grid of panels, which has fewer in a section of few panels. */
const columnsOf = (grid: HTMLElement): number => {
  const tracks = getComputedStyle(grid).gridTemplateColumns;
  return tracks.includes('px') ? tracks.split(' ').length : GRID_COLUMNS;
};

/** The corner of a panel that resizes it: by dragging, or with the arrow keys. */
export function ResizeHandle({ title, size, onPreview, onSize }: ResizeProps) {
  const origin = useRef<Origin | null>(null);
  const sizeAt = ({ clientX, clientY }: PointerEvent): PanelSize | null => {
    if (!origin.current) return null;
    const { x, y, width, size: from, column } = origin.current;
    const to = nearestSize((width + clientX - x) / column, from.height + clientY - y);
    // On a narrow page a panel is drawn wider than its size.
    return Math.abs(clientX - x) < column / 2 ? { ...to, columns: from.columns } : to;
  };
  const finish = (to: PanelSize | null): void => {
    const from = origin.current?.size;
    origin.current = null;
    onPreview(null);
    if (to && from && !sameSize(to, from)) onSize(to);
  };
  return (
    <button
      type="button"
      className={classes.resize}
      aria-label={`Resize ${title}: ${size.columns} of ${GRID_COLUMNS} columns, ${size.height} px high`}
      title="Drag to resize, or use the arrow keys"
      onPointerDown={(event) => {
        const panel = event.currentTarget.parentElement;
        const grid = panel?.parentElement;
        if (!panel || !grid || event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        origin.current = {
          x: event.clientX,
          y: event.clientY,
          width: panel.clientWidth,
          size,
          column: grid.clientWidth / columnsOf(grid) || 1,
        };
      }}
      onPointerMove={(event) => {
        const to = sizeAt(event);
        if (to && !sameSize(to, size)) onPreview(to);
      }}
      onPointerUp={(event) => finish(sizeAt(event))}
      onPointerCancel={() => finish(null)}
      onKeyDown={(event) => {
        const steps = STEPS[event.key];
        if (!steps) return;
        event.preventDefault();
        onSize(steppedSize(size, ...steps));
      }}
    >
      <IconArrowsDiagonal2 size={12} aria-hidden="true" />
    </button>
  );
}

/** What each key adds to width and height. */
const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
