import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { firstSort, type Column } from './columns';
import classes from './runs.module.css';

type Props = { column: Column; sort: string; onSort: (sort: string) => void };

/** A column's title; pressed, it sorts, and pressed again the other way. */
export function Heading({ column, sort, onSort }: Props) {
  const { title, sort: by, right } = column;
  if (!by) {
    return (
      <div role="columnheader" className={right ? 'right' : ''}>
        {title || <span className="visually-hidden">Actions</span>}
      </div>
    );
  }
  const down = sort === `-${by}`;
  const up = sort === by;
  const next = down ? by : up ? `-${by}` : firstSort(by, column);
  return (
    <div
      role="columnheader"
      className={right ? 'right' : ''}
      aria-sort={up ? 'ascending' : down ? 'descending' : 'none'}
    >
      <button type="button" className={classes.sort} onClick={() => onSort(next)}>
        {title}
        {up && <IconArrowUp size={12} aria-hidden="true" />}
        {down && <IconArrowDown size={12} aria-hidden="true" />}
      </button>
    </div>
  );
}
