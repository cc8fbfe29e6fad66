import { Button } from '@mantine/core';
import { formatInteger, plural } from '@/lib/format';
import classes from './runs.module.css';
import type { Selection } from './selection';

type Props = {
  /** The ids of the loaded rows. */
  loaded: readonly string[];
  /** The number of runs that match. */
  total: number;
  selection: Selection;
};

/** Once all loaded rows are selected, offers those that are not loaded as well. */
export function SelectEverything({ loaded, total, selection }: Props) {
  if (loaded.length === 0 || loaded.length >= total) return null;
  if (selection.everything || !loaded.every((id) => selection.has(id))) return null;
  return (
    <div className={classes.offer} role="status">
      {plural(loaded.length, 'loaded run')} selected.
      <Button variant="subtle" onClick={selection.selectEverything}>
        Select all {formatInteger(total)} that match
      </Button>
    </div>
  );
}
