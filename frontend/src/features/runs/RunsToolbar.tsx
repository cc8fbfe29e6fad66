import { NativeSelect, SegmentedControl, Switch } from '@mantine/core';
import type { ReactNode } from 'react';
import type { GroupBy } from '@/api/comparisons';
import type { RunField } from '@/api/runFields';
import { TextLink } from '@/components/controls';
import { plural } from '@/lib/format';
import { STATE_FILTERS, type StateFilter } from './filters';
import classes from './runs.module.css';

type Props = {
  total: number | undefined;
  state: StateFilter;
  archived: boolean;
  columns: ReactNode;
  /** The settings that runs can be grouped by. */
  fields: readonly RunField[];
  group: GroupBy | undefined;
  onGroup: (group: GroupBy | undefined) => void;
  onState: (state: StateFilter) => void;
  onArchived: (archived: boolean) => void;
};

const GROUPS: readonly { value: GroupBy; label: string }[] = [
  { value: '', label: 'Ungrouped' },
  { value: 'seed', label: 'Group by config (aggregate seeds)' },
  { value: 'algorithm', label: 'Group by algorithm' },
  { value: 'environment', label: 'Group by environment' },
  { value: 'group', label: 'Group by group' },
  { value: 'state', label: 'Group by state' },
  { value: 'host', label: 'Group by host' },
];

/** The filters, grouping and columns of the list of runs. */
export function RunsToolbar(props: Props) {
  const { total, state, archived, columns, fields, group, onGroup, onState, onArchived } = props;
  const settings = fields
    .filter(({ origin }) => origin === 'setting')
    .map(({ name, title }) => ({ value: name, label: `${title} (${name})` }));
  if (group?.includes('.') && !settings.some(({ value }) => value === group)) {
    settings.push({ value: group, label: group });
  }
  return (
    <div className={classes.toolbar}>
      <SegmentedControl
        size="xs"
        aria-label="Filter by state"
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
      <TextLink to="/deleted" c="var(--muted)">
        Recently deleted
      </TextLink>
      <span className="muted" role="status">
        {total === undefined ? '' : plural(total, 'run')}
      </span>
      <span className="grow" />
      <NativeSelect
        aria-label="Group runs"
        value={group ?? ''}
        data={[...GROUPS, { group: 'Group by hyperparameter', items: settings }]}
        className={classes.groupSelect ?? ''}
        onChange={({ currentTarget }) => onGroup(currentTarget.value || undefined)}
      />
      {columns}
    </div>
  );
}
