import { Checkbox } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { Run } from '@/api/runs';
import { CardsHead } from './CardsHead';
import type { Column } from './columns';
import { Heading } from './Heading';
import { RunRow } from './RunRow';
import classes from './runs.module.css';
import type { Selection } from './selection';
import { useSparklines } from './sparklines';

type Props = {
  runs: readonly Run[];
  total: number;
  columns: readonly Column[];
  selection: Selection;
  sort: string;
  onSort: (sort: string) => void;
  onEndInView: () => void;
};

const ROW = 36;
const CARD = 76;
const SELECT = '20px';

/** The runs, of which only the rows in view are in the page. Arrows move, space selects, Enter opens. */
export function RunsTable({ runs, total, columns, selection, sort, onSort, onEndInView }: Props) {
  const navigate = useNavigate();
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(0);
  const moved = useRef(false);
  const narrow = useMediaQuery('(max-width: 720px)', false, { getInitialValueInEffect: false });
  const template = [SELECT, ...columns.map(({ width }) => width)].join(' ');
  // The compiler cannot see into this hook; its functions are used in this component only.
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({
    count: runs.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (narrow ? CARD : ROW),
    getItemKey: (index) => runs[index]?.id ?? index,
    overscan: 12,
  });
  const rows = virtual.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? 0;
  const inView = useMemo(() => runs.slice(first, last + 1).map(({ id }) => id), [runs, first, last]);
  const sparklines = useSparklines(narrow || !columns.some(({ id }) => id === 'curve') ? NONE : inView);

  useEffect(() => virtual.measure(), [narrow, virtual]);
  useEffect(() => {
    if (last >= runs.length - 20) onEndInView();
  }, [last, runs.length, onEndInView]);
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${cursor}"]`)?.focus();
  }, [cursor, rows]);

  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    const row = event.target as HTMLElement;
    if (row.getAttribute('role') !== 'row') return;
    const end = runs.length - 1;
    const to = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, Home: 0, End: end }[event.key];
    const run = runs[cursor];
    if (to !== undefined) {
      const next = Math.max(0, Math.min(end, to));
      const target = runs[next];
      if (event.shiftKey && run && target) selection.extend(run.id, target.id);
      moved.current = true;
      setCursor(next);
      virtual.scrollToIndex(next);
    } else if (event.key === ' ' && run) selection.toggle(run.id);
    else if (event.key === 'Enter' && run) void navigate({ to: '/runs/$runId', params: { runId: run.id } });
    else return;
    event.preventDefault();
  };

  const all = runs.length > 0 && runs.every(({ id }) => selection.ids.has(id));
  const everything = (
    <Checkbox
      size="xs"
      label={narrow && 'Select all'}
      aria-label="Select all loaded runs"
      checked={all}
      indeterminate={!all && selection.ids.size > 0}
      onChange={() => selection.setAll(all ? [] : runs.map(({ id }) => id))}
    />
  );
  return (
    <div className="panel">
      {narrow && <CardsHead selectAll={everything} sort={sort} onSort={onSort} />}
      <div ref={scroller} className={classes.scroller}>
        <div
          role="grid"
          aria-multiselectable
          aria-rowcount={total + 1}
          aria-label="Runs"
          className={classes.table}
        >
          {!narrow && (
            <div
              role="row"
              aria-rowindex={1}
              className={classes.head}
              style={{ gridTemplateColumns: template }}
            >
              <div role="columnheader">{everything}</div>
              {columns.map((column) => (
                <Heading key={column.id} column={column} sort={sort} onSort={onSort} />
              ))}
            </div>
          )}
          <div
            role="rowgroup"
            style={{ height: virtual.getTotalSize(), position: 'relative' }}
            onKeyDown={onKey}
            onFocus={({ target }) => {
              const index = target.closest<HTMLElement>('[data-index]')?.dataset.index;
              if (index !== undefined) setCursor(Number(index));
            }}
          >
            {rows.map(({ index, key, start }) => {
              const run = runs[index];
              return (
                run && (
                  <RunRow
                    key={key}
                    run={run}
                    index={index}
                    columns={columns}
                    template={template}
                    narrow={narrow}
                    selected={selection.ids.has(run.id)}
                    current={index === Math.min(cursor, runs.length - 1)}
                    spark={sparklines.get(run.id)}
                    style={{ transform: `translateY(${start}px)` }}
                    onToggle={selection.toggle}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

const NONE: readonly string[] = [];
