import { NativeSelect, SegmentedControl, Switch } from '@mantine/core';
import type { ReactNode } from 'react';
import type { GroupBy } from '@/api/comparisons';
import { plural } from '@/lib/format';
import classes from './runs.module.css';
import { STATE_FILTERS, type StateFilter } from './search';

type Props = {
  total: number | undefined;
  state: StateFilter;
  archived: boolean;
  columns: ReactNode;
  group: GroupBy | undefined;
  onGroup: (group: GroupBy | undefined) => void;
  onState: (state: StateFilter) => void;
  onArchived: (archived: boolean) => void;
};

const GROUPS: readonly { value: GroupBy | ''; label: string }[] = [
  { value: '', label: 'Each run' },
  { value: 'seed', label: 'By setting, seeds together' },
  { value: 'algorithm', label: 'By algorithm' },
  { value: 'environment', label: 'By environment' },
];

/** Which runs to show, and how. */
export function RunsToolbar({ total, state, archived, columns, group, onGroup, onState, onArchived }: Props) {
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
      <NativeSelect
        size="xs"
        aria-label="Group the runs"
        value={group ?? ''}
        data={[...GROUPS]}
        onChange={({ currentTarget }) => onGroup((currentTarget.value || undefined) as GroupBy | undefined)}
      />
      {columns}
    </div>
  );
}
