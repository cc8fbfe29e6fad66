import { ActionIcon, NativeSelect } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { COLUMNS, firstSort } from './columns';
import classes from './runs.module.css';

type Props = { selectAll: ReactNode; sort: string; onSort: (sort: string) => void };

/** What the headings are for, on a phone, where there are none. */
export function CardsHead({ selectAll, sort, onSort }: Props) {
  const by = sort.replace('-', '');
  const down = sort !== by;
  return (
    <div className={classes.cardsHead}>
      {selectAll}
      <span className="grow" />
      <NativeSelect
        size="xs"
        aria-label="Sort by"
        value={by}
        data={COLUMNS.flatMap(({ title, sort: value }) => (value ? [{ value, label: title }] : []))}
        onChange={({ currentTarget }) => {
          const column = COLUMNS.find((each) => each.sort === currentTarget.value);
          if (column?.sort) onSort(firstSort(column.sort, column));
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
