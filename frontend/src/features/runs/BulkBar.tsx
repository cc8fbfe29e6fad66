import { Button } from '@mantine/core';
import { useRef, useState } from 'react';
import type { BulkAction } from '@/api/bulk';
import { ButtonLink } from '@/components/links';
import { formatWhole, plural } from '@/lib/format';
import { BULK, BulkDialog } from './BulkDialog';
import classes from './runs.module.css';

type Props = {
  ids: ReadonlySet<string>;
  /** How many of them cannot be seen in the list. */
  notShown?: number;
  /** The one run has a checkpoint to go on from. */
  canFork: boolean;
  /** Whole groups of seeds are selected: they are compared as such. */
  grouped?: boolean;
  /** Empties the selection, and with it the bar: has to bring the focus elsewhere. */
  onClear: () => void;
};

const ACTIONS = Object.keys(BULK) as BulkAction[];

/** What can be done to the selected runs. */
export function BulkBar({ ids, notShown = 0, canFork, grouped = false, onClear }: Props) {
  const [action, setAction] = useState<BulkAction | null>(null);
  const opener = useRef<HTMLButtonElement>(null);
  if (ids.size === 0) return null;
  const close = (): void => {
    setAction(null);
    opener.current?.focus();
  };
  const done = (): void => {
    opener.current = null;
    onClear();
  };
  const chosen = [...ids];
  const [only] = chosen;
  return (
    <div className={classes.bulk} role="toolbar" aria-label="Selected runs">
      <span role="status">
        {plural(ids.size, 'run')} selected{notShown > 0 && `, ${formatWhole(notShown)} not shown`}
      </span>
      {ids.size > 1 && (
        <ButtonLink
          variant="default"
          to="/compare"
          search={{ runs: chosen.join(','), ...(grouped ? { group: 'seed' } : {}) }}
        >
          Compare
        </ButtonLink>
      )}
      {ids.size === 1 && only && canFork && (
        <ButtonLink variant="default" to="/new" search={{ fork: only }}>
          Fork
        </ButtonLink>
      )}
      {ACTIONS.map((each) => (
        <Button
          key={each}
          variant="default"
          {...(BULK[each]?.danger ? { className: classes.danger } : {})}
          onClick={({ currentTarget }) => {
            opener.current = currentTarget;
            setAction(each);
          }}
        >
          {BULK[each]?.label}…
        </Button>
      ))}
      <Button variant="subtle" onClick={onClear}>
        Clear
      </Button>
      {action && <BulkDialog action={action} ids={chosen} onClose={close} onDone={done} />}
    </div>
  );
}
