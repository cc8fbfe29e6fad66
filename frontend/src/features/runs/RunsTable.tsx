import { useMediaQuery } from '@mantine/hooks';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import type { Run } from '@/api/runs';
import { COLUMNS, TEMPLATE, type Column } from './columns';
import { RunCard } from './RunCard';
import classes from './runs.module.css';

type Props = {
  runs: readonly Run[];
  total: number;
  sort: string;
  onSort: (sort: string) => void;
  onEndInView: () => void;
};

const ROW = 36;
const CARD = 76;

/** The runs, of which only the rows in view are in the page. */
export function RunsTable({ runs, total, sort, onSort, onEndInView }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const narrow = useMediaQuery('(max-width: 720px)', false, { getInitialValueInEffect: false });
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
  const last = rows.at(-1)?.index ?? 0;

  useEffect(() => virtual.measure(), [narrow, virtual]);
  useEffect(() => {
    if (last >= runs.length - 20) onEndInView();
  }, [last, runs.length, onEndInView]);

  return (
    <div className="panel">
      <div ref={scroller} className={classes.scroller} tabIndex={0} role="region" aria-label="Runs">
        <div role="table" aria-rowcount={total + 1} aria-label="Runs" className={classes.table}>
          {!narrow && (
            <div
              role="row"
              aria-rowindex={1}
              className={classes.head}
              style={{ gridTemplateColumns: TEMPLATE }}
            >
              {COLUMNS.map((column) => (
                <Heading key={column.id} column={column} sort={sort} onSort={onSort} />
              ))}
            </div>
          )}
          <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
            {rows.map(({ index, key, start }) => {
              const run = runs[index];
              if (!run) return null;
              const style = { transform: `translateY(${start}px)` };
              return narrow ? (
                <RunCard key={key} run={run} index={index} style={style} />
              ) : (
                <div
                  key={key}
                  role="row"
                  aria-rowindex={index + 2}
                  className={classes.row}
                  style={{ ...style, gridTemplateColumns: TEMPLATE }}
                >
                  {COLUMNS.map(({ id, right, cell }) => (
                    <div key={id} role="cell" className={right ? 'right' : 'ellipsis'}>
                      {cell(run)}
                    </div>
                  ))}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

function Heading({ column, sort, onSort }: { column: Column; sort: string; onSort: (sort: string) => void }) {
  const { title, sort: by, right, largestFirst } = column;
  const down = sort === `-${by}`;
  const up = sort === by;
  const first = largestFirst ? `-${by}` : by;
  const next = up || down ? (down ? by : `-${by}`) : first;
  return (
    <div
      role="columnheader"
      className={right ? 'right' : undefined}
      aria-sort={up ? 'ascending' : down ? 'descending' : undefined}
    >
      {by && next ? (
        <button type="button" className={classes.sort} onClick={() => onSort(next)}>
          {title}
          {up && <IconArrowUp size={12} aria-hidden="true" />}
          {down && <IconArrowDown size={12} aria-hidden="true" />}
        </button>
      ) : (
        title || <span className="visually-hidden">Actions</span>
      )}
    </div>
  );
}
