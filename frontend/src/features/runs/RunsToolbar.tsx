import { SegmentedControl, Switch } from '@mantine/core';
import type { ReactNode } from 'react';
import { plural } from '@/lib/format';
import classes from './runs.module.css';
import { STATE_FILTERS, type StateFilter } from './search';

type Props = {
  total: number | undefined;
  state: StateFilter;
  archived: boolean;
  columns: ReactNode;
  onState: (state: StateFilter) => void;
  onArchived: (archived: boolean) => void;
};

/** Which runs to show. */
export function RunsToolbar({ total, state, archived, columns, onState, onArchived }: Props) {
  return (
    <div className={classes.toolbar}>
      <SegmentedControl
        size="xs"
        aria-label="Which states"
        value={state}
        data={Object.entries(STATE_FILTERS).map(([value, { label }]) => ({ value, label }))}
        onChange={(value) => onState(value as StateFilter)}
      />
      <Switch
        size="xs"
        label="Archived"
        checked={archived}
        onChange={({ currentTarget }) => onArchived(currentTarget.checked)}
      />
      <span className="muted" role="status">
        {total === undefined ? '' : plural(total, 'run')}
      </span>
      <span className="grow" />
      {columns}
    </div>
  );
}
