import { ActionIcon, NativeSelect } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { type Column, initialSort } from './columns';
import classes from './runs.module.css';

type CardsHeaderProps = {
  selectAll: ReactNode;
  /** What all names have in common. */
  note: string;
  columns: readonly Column[];
  sort: string;
  onSort: (sort: string) => void;
};

/** Selection and sorting above the cards on a phone, in place of column headers. */
export function CardsHeader({ selectAll, note, columns, sort, onSort }: CardsHeaderProps) {
  const by = sort.replace(/^-/, '');
  const down = sort !== by;
  return (
    <div className={classes.cardsHeader}>
      {selectAll}
      <span className="grow ellipsis muted" title={note}>
        {note}
      </span>
      <NativeSelect
        aria-label="Sort by"
        value={by}
        data={columns.flatMap(({ title, sort: value }) => (value ? [{ value, label: title }] : []))}
        onChange={({ currentTarget }) => {
          const column = columns.find((candidate) => candidate.sort === currentTarget.value);
          if (column?.sort) onSort(initialSort(column.sort, column));
        }}
      />
      <ActionIcon
        variant="default"
        size={30}
        aria-label="Descending"
        aria-pressed={down}
        onClick={() => onSort(down ? by : `-${by}`)}
      >
        {down ? <IconArrowDown size={14} /> : <IconArrowUp size={14} />}
      </ActionIcon>
    </div>
  );
}
