import { Button, Checkbox, Popover } from '@mantine/core';
import type { ScoreColumn } from '@/api/scores';

const SUFFIX: Record<ScoreColumn['source'], string> = {
  ours: '',
  published: ', published',
  people: ', here',
};

type Props = {
  columns: readonly ScoreColumn[];
  /** Ids of the chosen columns; undefined for all. */
  onChange: (chosen: string[] | undefined) => void;
};

/** Which columns are shown: the foot is over the environments that all of them have. */
export function ColumnPicker({ columns, onChange }: Props) {
  const shown = columns.filter((column) => column.shown).map(({ id }) => id);
  return (
    <Popover position="bottom-start" shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <Button size="xs" variant="default">
          Columns: {shown.length} of {columns.length}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Checkbox.Group
          value={shown}
          onChange={(chosen) => {
            if (chosen.length === 0) return;
            onChange(chosen.length === columns.length ? undefined : chosen);
          }}
        >
          <div style={{ display: 'grid', gap: 8 }}>
            {columns.map(({ id, title, source, n }) => (
              <Checkbox key={id} size="xs" value={id} label={`${title}${SUFFIX[source]} (${n})`} />
            ))}
          </div>
        </Checkbox.Group>
      </Popover.Dropdown>
    </Popover>
  );
}
