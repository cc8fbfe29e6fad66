import { ActionIcon, Button, TextInput } from '@mantine/core';
import { IconArrowUp } from '@tabler/icons-react';
import classes from './export.module.css';
import type { LegendEntry } from './printLayout';

type Props = {
  entries: readonly LegendEntry[];
  onEntries: (entries: readonly LegendEntry[]) => void;
  /** Takes back all changes; undefined without any. */
  onReset?: (() => void) | undefined;
};

/** The texts of a legend and their order. */
export function LegendFields({ entries, onEntries, onReset }: Props) {
  const raise = (at: number): void => {
    const moved = [...entries];
    moved.splice(at - 1, 0, ...moved.splice(at, 1));
    onEntries(moved);
  };
  return (
    <fieldset className={classes.legend}>
      <legend>Legend text</legend>
      {entries.map((entry, at) => (
        <div key={entry.number} className="row">
          <TextInput
            size="xs"
            className="grow"
            aria-label={`Entry ${at + 1}`}
            maxLength={200}
            value={entry.text}
            onChange={({ currentTarget: { value } }) =>
              onEntries(entries.map((other) => (other === entry ? { ...other, text: value } : other)))
            }
          />
          <ActionIcon
            size={24}
            variant="subtle"
            color="gray"
            aria-label={`Move entry ${at + 1} up`}
            disabled={at === 0}
            onClick={() => raise(at)}
          >
            <IconArrowUp size={14} aria-hidden="true" />
          </ActionIcon>
        </div>
      ))}
      {onReset && (
        <Button variant="subtle" size="compact-xs" onClick={onReset}>
          As in the chart
        </Button>
      )}
    </fieldset>
  );
}
