import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { useRef, type KeyboardEvent, type PointerEvent } from 'react';
import { MAX_WIDTH, MIN_WIDTH, minWidth_px } from './columnLayout';
import { initialSort, type Column } from './columns';
import classes from './runs.module.css';

const STEP_PX = 12;

type Props = {
  column: Column;
  /** Its place among the columns. */
  index: number;
  /** What all of its cells have in common. */
  note?: string;
  sort: string;
  onSort: (sort: string) => void;
  onResize: (id: string, width_px: number) => void;
  onMove: (id: string, to: number) => void;
};

const DRAGGED = 'application/x-callboard-column';

/**
 * A column's header; pressing it sorts, pressing it again reverses the order. Dragging it, or Alt and an arrow, moves
 * the column; dragging its edge, or Shift and an arrow, resizes it.
 */
export function ColumnHeader({ column, index, note, sort, onSort, onResize, onMove }: Props) {
  const { id, title, hint, sort: by, right } = column;
  const cell = useRef<HTMLDivElement>(null);
  if (title === '') {
    return (
      <div role="columnheader" className={`${classes.header} ${classes.menu}`}>
        <span className="visually-hidden">Actions</span>
      </div>
    );
  }
  const down = by !== undefined && sort === `-${by}`;
  const up = by !== undefined && sort === by;
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined || !(event.altKey || event.shiftKey)) return;
    event.preventDefault();
    if (event.altKey) onMove(id, index + step);
    else onResize(id, (cell.current?.offsetWidth ?? 0) + step * STEP_PX);
  };
  return (
    <div
      ref={cell}
      role="columnheader"
      aria-label={title}
      title={hint}
      className={`${classes.header} ${right ? 'right' : ''}`}
      {...(by ? { 'aria-sort': up ? 'ascending' : down ? 'descending' : 'none' } : {})}
      draggable
      onDragStart={({ dataTransfer }) => {
        dataTransfer.setData(DRAGGED, id);
        dataTransfer.effectAllowed = 'move';
      }}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault();
      }}
      onDrop={(event) => {
        const dragged = event.dataTransfer.getData(DRAGGED);
        if (dragged) onMove(dragged, index);
      }}
    >
      {by ? (
        <button
          type="button"
          className={classes.sort}
          title={title}
          onClick={() => onSort(down ? by : up ? `-${by}` : initialSort(by, column))}
          onKeyDown={move}
        >
          <span className="ellipsis">{title}</span>
          {up && <IconArrowUp size={12} aria-hidden="true" />}
          {down && <IconArrowDown size={12} aria-hidden="true" />}
        </button>
      ) : (
        <span className="ellipsis">{title}</span>
      )}
      {note && (
        <span className={`muted ellipsis ${classes.note}`} title={note}>
          {note}
        </span>
      )}
      <Edge
        title={title}
        value_px={minWidth_px(column)}
        width_px={() => cell.current?.offsetWidth ?? 0}
        onResize={(px) => onResize(id, px)}
      />
    </div>
  );
}

type EdgeProps = {
  title: string;
  value_px: number;
  /** The width as drawn, which may be larger. */
  width_px: () => number;
  onResize: (width_px: number) => void;
};

/** The right edge of a header, which resizes its column. */
function Edge({ title, value_px, width_px, onResize }: EdgeProps) {
  const start = useRef<{ x: number; width: number } | null>(null);
  const drag = (event: PointerEvent<HTMLElement>): void => {
    if (start.current) onResize(start.current.width + event.clientX - start.current.x);
  };
  return (
    <div
      role="separator"
      aria-orientation="vertical"
      aria-valuenow={value_px}
      aria-valuemin={MIN_WIDTH}
      aria-valuemax={MAX_WIDTH}
      aria-label={`Width of ${title}`}
      // No stop of the Tab key: the header has the keys too.
      tabIndex={-1}
      className={classes.edge}
      title="Drag to resize; or press Shift and an arrow key in the header"
      // Dragging the edge must not drag the column.
      draggable
      onDragStart={(event) => {
        event.preventDefault();
        event.stopPropagation();
      }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { x: event.clientX, width: width_px() };
      }}
      onPointerMove={drag}
      onPointerUp={(event) => {
        drag(event);
        start.current = null;
      }}
      onKeyDown={(event) => {
        const by_px = { ArrowLeft: -STEP_PX, ArrowRight: STEP_PX }[event.key];
        if (by_px === undefined) return;
        event.preventDefault();
        onResize(width_px() + by_px);
      }}
    />
  );
}
