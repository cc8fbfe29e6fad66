import { Checkbox } from '@mantine/core';
import { memo, type CSSProperties } from 'react';
import type { Run } from '@/api/runs';
import type { Column } from './columns';
import { RunCard } from './RunCard';
import classes from './runs.module.css';

type Props = {
  run: Run;
  index: number;
  columns: readonly Column[];
  template: string;
  narrow: boolean;
  selected: boolean;
  current: boolean;
  spark: readonly number[] | undefined;
  style: CSSProperties;
  onToggle: (id: string, through: boolean) => void;
};

/** One run in the table, or on a phone one card. */
export const RunRow = memo(function RunRow(props: Props) {
  const { run, index, columns, template, narrow, selected, current, spark, style, onToggle } = props;
  const row = {
    role: 'row',
    'aria-rowindex': index + 2,
    'aria-selected': selected,
    'data-index': index,
    tabIndex: current ? 0 : -1,
  };
  const select = (
    <div role="gridcell">
      <Checkbox
        size="xs"
        tabIndex={-1}
        aria-label={`Select ${run.name}`}
        checked={selected}
        onChange={(event) => onToggle(run.id, (event.nativeEvent as PointerEvent).shiftKey)}
      />
    </div>
  );
  if (narrow) {
    return (
      <div {...row} className={classes.card} style={style}>
        {select}
        <RunCard run={run} />
      </div>
    );
  }
  return (
    <div {...row} className={classes.row} style={{ ...style, gridTemplateColumns: template }}>
      {select}
      {columns.map(({ id, right, cell }) => (
        <div key={id} role="gridcell" className={right ? 'right' : 'ellipsis'}>
          {cell(run, spark)}
        </div>
      ))}
    </div>
  );
});
