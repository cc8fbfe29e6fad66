import { Checkbox } from '@mantine/core';
import { useMediaQuery, useWindowEvent } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { type Beside, useNames } from '@/api/names';
import { MAX_COMPARED } from '@/lib/runBounds';
import { runMetricsQuery } from '@/api/runFields';
import type { Run } from '@/api/runs';
import { useLineStyles } from '@/components/chart/lineStyles';
import { distinctStyles, searchOfStyle } from '@/components/chart/seriesStyles';
import { formatInteger } from '@/lib/format';
import { isDialogOpen, usePrinting } from '@/lib/hooks';
import { CardsHeader } from './CardsHeader';
import { ColumnHeader } from './ColumnHeader';
import { leastWidth_px, moved, resized, type Layout } from './columnLayout';
import type { Column } from './columns';
import { TAKES_KEYS } from './groupKeys';
import { RunRow } from './RunRow';
import classes from './runs.module.css';
import type { Selection } from './selection';
import { useSparklines } from './sparklines';

type Props = {
  runs: readonly Run[];
  total: number;
  columns: readonly Column[];
  layout: Layout;
  onLayout: (layout: Layout) => void;
  selection: Selection;
  sort: string;
  onSort: (sort: string) => void;
  onEndReached: () => void;
};

const ROW_HEIGHT = 36;
const CARD_HEIGHT = 90;
const SELECT_WIDTH = '20px';
const MAX_PRINTED = 1000;

/**
 * A virtual table of runs: only rows in view are rendered, on paper the first `MAX_PRINTED` that are loaded. Arrows move,
 * space selects, Enter opens; right and left move within a row, which is a single stop of the Tab key.
 */
export function RunsTable(props: Props) {
  const { runs, total, columns, layout, onLayout, selection, sort, onSort, onEndReached } = props;
  const navigate = useNavigate();
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(0);
  const focusCursor = useRef(false);
  const narrow = useMediaQuery('(max-width: 720px)', false, { getInitialValueInEffect: false });
  const printing = usePrinting();
  const shown = columns.map(({ id }) => id).join();
  // What the columns or cards show is no part of names.
  const beside = useMemo(
    () => BESIDE.filter((kind) => narrow || shown.split(',').includes(kind)),
    [narrow, shown],
  );
  const names = useNames(runs, beside);
  const template = [SELECT_WIDTH, ...columns.map(({ width }) => width)].join(' ');
  const width_px = leastWidth_px(columns);
  // Not memoisable by the React compiler; its functions stay within this component.
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({
    count: runs.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (narrow ? CARD_HEIGHT : ROW_HEIGHT),
    getItemKey: (index) => runs[index]?.id ?? index,
    overscan: 12,
  });
  const rows = virtual.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? 0;
  const inView = useMemo(() => runs.slice(first, last + 1).map(({ id }) => id), [runs, first, last]);
  const rendered = printing
    ? runs.slice(0, MAX_PRINTED).map(({ id }, index) => ({ index, key: id, start: 0 }))
    : rows;
  const sparklines = useSparklines(narrow || !columns.some(({ id }) => id === 'curve') ? NO_RUNS : inView);

  const lookOf = useLineStyles(selection.ids.size > 0);
  // As Compare draws them: in the order in which they were selected.
  const styles = useMemo(() => distinctStyles([...selection.ids]), [selection.ids]);
  const looks = useMemo(
    () => new Map([...styles].map(([id, style]) => [id, lookOf(style)] as const)),
    [styles, lookOf],
  );

  const metrics = useMemo(
    () => [...new Set(columns.flatMap(({ metric }) => metric ?? []))].slice(0, MAX_METRICS),
    [columns],
  );
  const summaries = useQuery(runMetricsQuery(narrow ? NO_RUNS : inView, metrics)).data;

  useEffect(() => {
    virtual.measure();
    // It has forgotten the heights of the rows in view.
    for (const row of scroller.current?.querySelectorAll('[data-index]') ?? []) virtual.measureElement(row);
  }, [narrow, virtual]);
  useEffect(() => {
    if (!printing && last >= runs.length - 20) onEndReached();
  }, [printing, last, runs.length, onEndReached]);
  useEffect(() => {
    if (!focusCursor.current) return;
    focusCursor.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${cursor}"]`)?.focus();
  }, [cursor, rows]);

  const rowAt = (index: number): HTMLElement | null =>
    scroller.current?.querySelector<HTMLElement>(`[data-index="${index}"]`) ?? null;
  /** Moves the cursor and the focus. */
  const moveTo = (index: number): void => {
    // If the cursor stays, the effect does not run now, and the flag would move the focus when the rows change.
    focusCursor.current = index !== cursor;
    setCursor(index);
    virtual.scrollToIndex(index);
    if (index === cursor) rowAt(index)?.focus();
  };
  const compare = (): void => {
    const { size } = selection.ids;
    if (size < 2 || size > MAX_COMPARED) return;
    void navigate({ to: '/', search: { list: 'beside', runs: [...selection.ids].join(',') } });
  };
  useWindowEvent('keydown', (event) => {
    const { target } = event;
    if (!(target instanceof Element) || isDialogOpen()) return;
    const isInside = scroller.current?.contains(target) ?? false;
    if (event.ctrlKey || event.altKey || event.metaKey || (!isInside && target.matches(TAKES_KEYS))) return;
    const at = Math.min(cursor, runs.length - 1);
    const run = runs[at];
    if (!run) return;
    if (event.key === 'j') moveTo(isInside ? Math.min(runs.length - 1, at + 1) : at);
    else if (event.key === 'k') moveTo(isInside ? Math.max(0, at - 1) : at);
    else if (event.key === 'x') {
      selection.toggle(run.id);
      moveTo(at);
    } else if (event.key === 'c') compare();
    else return;
    event.preventDefault();
  });

  /** Moves the focus within a row: its links and buttons are no stops of the Tab key. */
  const moveWithin = (event: KeyboardEvent<HTMLElement>): void => {
    const target = event.target as HTMLElement;
    const row = target.closest<HTMLElement>('[role=row]');
    if (!row) return;
    const stops = [row, ...row.querySelectorAll<HTMLElement>('a, button')];
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = event.key === 'Escape' ? row : by && stops[stops.indexOf(target) + by];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    const row = event.target as HTMLElement;
    moveWithin(event);
    if (row.getAttribute('role') !== 'row' || event.defaultPrevented) return;
    const end = runs.length - 1;
    const at = Number(row.dataset.index); // a focused row moves with its run
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: end }[event.key];
    const run = runs[at];
    if (to !== undefined) {
      const next = Math.max(0, Math.min(end, to));
      const target = runs[next];
      if (event.shiftKey && run && target) selection.extend(run.id, target.id);
      moveTo(next);
    } else if (event.key === ' ' && run) selection.toggle(run.id);
    else if (event.key === 'Enter' && run)
      void navigate({
        to: '/runs/$runId',
        params: { runId: run.id },
        search: searchOfStyle(styles.get(run.id)),
      });
    else return;
    event.preventDefault();
  };

  const all = runs.length > 0 && runs.every(({ id }) => selection.has(id));
  const selectAll = (
    <Checkbox
      size="xs"
      label={narrow && 'Select all'}
      aria-label="Select all loaded runs"
      checked={all}
      indeterminate={!all && selection.any}
      onChange={() => selection.setAll(all ? [] : runs.map(({ id }) => id))}
    />
  );
  return (
    <div className={`panel ${classes.fill}`}>
      {narrow && (
        <CardsHeader
          selectAll={selectAll}
          note={names.shared}
          columns={columns}
          sort={sort}
          onSort={onSort}
        />
      )}
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
              style={{ gridTemplateColumns: template, minWidth: width_px }}
            >
              <div role="columnheader">{selectAll}</div>
              {columns.map((column, index) => (
                <ColumnHeader
                  key={column.id}
                  column={column}
                  index={index}
                  sort={sort}
                  onSort={onSort}
                  note={column.id === 'name' ? names.shared : ''}
                  onResize={(id, px) => onLayout(resized(layout, id, px))}
                  onMove={(id, to) => onLayout(moved(layout, id, to))}
                />
              ))}
            </div>
          )}
          <div
            role="rowgroup"
            className={classes.rows}
            style={{ height: virtual.getTotalSize(), position: 'relative' }}
            onKeyDown={onKey}
            onFocus={({ target }) => {
              const index = target.closest<HTMLElement>('[data-index]')?.dataset.index;
              if (index !== undefined) setCursor(Number(index));
            }}
          >
            {rendered.map(({ index, key, start }) => {
              const run = runs[index];
              return (
                run && (
                  <RunRow
                    key={key}
                    run={run}
                    name={names.of(run)}
                    label={names.label(run)}
                    index={index}
                    columns={columns}
                    template={template}
                    width_px={width_px}
                    narrow={narrow}
                    selected={selection.has(run.id)}
                    current={index === Math.min(cursor, runs.length - 1)}
                    spark={sparklines.get(run.id)}
                    metrics={summaries?.get(run.id)}
                    lineStyle={styles.get(run.id)}
                    look={looks.get(run.id)}
                    style={{ transform: `translateY(${start}px)` }}
                    measure={virtual.measureElement}
                    onToggle={selection.toggle}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
      {printing && rendered.length < total && (
        <p className={classes.rest}>
          The first {formatInteger(rendered.length)} of {formatInteger(total)} runs.
        </p>
      )}
    </div>
  );
}

const NO_RUNS: readonly string[] = [];
const BESIDE: readonly Beside[] = ['algorithm', 'environment'];
const MAX_METRICS = 50;
