import { ActionIcon, Button, Checkbox, Popover, TextInput } from '@mantine/core';
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { runFieldsQuery, STATISTICS, type RunField } from '@/api/runFields';
import { formatInteger } from '@/lib/format';
import { DEFAULT_LAYOUT, moved, toggled, type Layout } from './columnLayout';
import { COLUMNS, extraColumn, FIXED } from './columns';
import classes from './runs.module.css';

const MAX_OFFERED = 40;
/** Others, such as `min`, are offered to who types their name. */
const OFFERED_STATISTICS: ReadonlySet<string> = new Set(['last', 'best', 'mean']);

type Option = { id: string; label: string; detail: string };

/** The columns of which the name or title contains every typed word; without any word, those that are not shown. */
export function offeredColumns(
  layout: Layout,
  fields: readonly RunField[],
  typed: string,
): readonly Option[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const built = COLUMNS.filter(({ id, title }) => title !== '' && !FIXED.has(id)).map(({ id, title }) => ({
    id,
    label: title,
    detail: '',
  }));
  const settings = fields
    .filter(({ origin }) => origin === 'setting')
    .map(({ name, title }) => ({ id: name, label: title, detail: name }));
  const metrics = fields
    .filter(({ origin }) => origin === 'metric')
    .flatMap(({ name, title }) =>
      STATISTICS.filter(
        (statistic) => OFFERED_STATISTICS.has(statistic) || words.some((word) => word.endsWith(statistic)),
      ).map((statistic) => ({
        id: `${name}.${statistic}`,
        label: `${title} (${statistic})`,
        detail: name,
      })),
    );
  return [...built, ...settings, ...metrics].filter(
    ({ id, label }) =>
      (words.length > 0 || !layout.shown.includes(id)) &&
      words.every((word) => `${id} ${label}`.toLowerCase().includes(word)),
  );
}

type Props = { layout: Layout; onLayout: (layout: Layout | null) => void };

/** Chooses and orders the columns: those of a run, any setting, and any metric. */
export function ColumnMenu({ layout, onLayout }: Props) {
  const [typed, setTyped] = useState('');
  const [opened, setOpened] = useState(false);
  const fields = useQuery(runFieldsQuery).data ?? [];
  const offered = offeredColumns(layout, fields, typed);
  const titleOf = (id: string): string =>
    (COLUMNS.find((column) => column.id === id) ?? extraColumn(id, fields))?.title ?? id;
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" trapFocus returnFocus withinPortal>
      <Popover.Target>
        <Button variant="default" visibleFrom="sm" onClick={() => setOpened(!opened)}>
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns" className={classes.columnMenu}>
        <TextInput
          type="search"
          aria-label="Search columns"
          placeholder="Search hyperparameters and metrics"
          data-autofocus
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        {typed.trim() === '' && (
          <ul aria-label="Shown columns" className={classes.columnList}>
            {layout.shown.map((id, index) => (
              <li key={id}>
                <Checkbox
                  size="xs"
                  className="grow"
                  label={titleOf(id)}
                  checked
                  disabled={FIXED.has(id)}
                  onChange={() => onLayout(toggled(layout, id))}
                />
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size={24}
                  aria-label={`Move ${titleOf(id)} to the left`}
                  disabled={index === 0}
                  onClick={() => onLayout(moved(layout, id, index - 1))}
                >
                  <IconArrowUp size={14} />
                </ActionIcon>
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size={24}
                  aria-label={`Move ${titleOf(id)} to the right`}
                  disabled={index === layout.shown.length - 1}
                  onClick={() => onLayout(moved(layout, id, index + 1))}
                >
                  <IconArrowDown size={14} />
                </ActionIcon>
              </li>
            ))}
          </ul>
        )}
        <ul aria-label="More columns" className={classes.columnList}>
          {offered.slice(0, MAX_OFFERED).map(({ id, label, detail }) => (
            <li key={id}>
              <Checkbox
                size="xs"
                label={label}
                {...(detail ? { description: detail } : {})}
                checked={layout.shown.includes(id)}
                onChange={() => onLayout(toggled(layout, id))}
              />
            </li>
          ))}
          {offered.length > MAX_OFFERED && (
            <li className="muted">{formatInteger(offered.length - MAX_OFFERED)} more: search for them</li>
          )}
          {offered.length === 0 && <li className="muted">No column has this name.</li>}
        </ul>
        <Button variant="subtle" onClick={() => onLayout(DEFAULT_LAYOUT)}>
          Reset columns
        </Button>
      </Popover.Dropdown>
    </Popover>
  );
}
