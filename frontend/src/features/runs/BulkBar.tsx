import { Button } from '@mantine/core';
import { useRef, useState } from 'react';
import { MAX_COMPARED } from '@/lib/runBounds';
import type { BulkAction, BulkTarget } from '@/api/runs';
import { ButtonLink } from '@/components/controls';
import { PermittedButton, useDenied } from '@/components/permission';
import { ExportMenu } from '@/components/run/ExportMenu';
import { formatInteger, plural } from '@/lib/format';
import { BULK_ACTIONS, BulkDialog } from './BulkDialog';
import classes from './runs.module.css';
import type { Selection } from './selection';

/** The service's limit. */
const MAX_FILTER_LENGTH = 2000;
const TOO_LONG = 'Too many runs are excluded for one filter: exclude at most about 60, or filter the list.';

type Props = {
  ids: ReadonlySet<string>;
  /** Everything that matches, where it is selected instead of single runs. */
  matching?: { filter: string; expected: number };
  /** Why nothing can be done with the selection. */
  refused?: string | undefined;
  /** How many of the selected runs are not in the list. */
  notShown?: number;
  /** Whether a single selected run may be forked. */
  canFork: boolean;
  /** Whether the list shows the archived runs. */
  archived?: boolean;
  /** Whether groups of seeds are selected, to be compared as groups. */
  grouped?: boolean;
  /** Clears the selection, which hides this bar: it has to move the focus. */
  onClear: () => void;
  /** Moves the focus back to the list. */
  onLeave?: () => void;
};

/** The actions on the selected runs. */
export function BulkBar(props: Props) {
  const {
    ids,
    matching,
    refused,
    notShown = 0,
    canFork,
    archived = false,
    grouped = false,
    onClear,
    onLeave,
  } = props;
  const [action, setAction] = useState<BulkAction | null>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const denied = useDenied();
  const n = matching?.expected ?? ids.size;
  if (n === 0) return null;
  const close = (): void => {
    setAction(null);
    opener.current?.focus();
  };
  const done = (): void => {
    if (action === 'tag' && !matching) return; // the same runs may be tagged again, or compared
    opener.current = null;
    onClear();
  };
  const selected = [...ids];
  const [first] = selected;
  const target: BulkTarget = matching ?? { ids: selected };
  const tooLong = matching !== undefined && matching.filter.length > MAX_FILTER_LENGTH ? TOO_LONG : undefined;
  const impossible = refused ?? tooLong;
  const tooMany = n > MAX_COMPARED ? `At most ${MAX_COMPARED} runs can be compared.` : undefined;
  const actions = (Object.keys(BULK_ACTIONS) as BulkAction[]).filter(
    (name) => name !== (archived ? 'archive' : 'unarchive'),
  );
  return (
    <div
      className={classes.bulk}
      role="toolbar"
      aria-label="Selected runs"
      onKeyDown={({ key, target, currentTarget }) => {
        // Not in a dialog or a menu.
        if (key === 'Escape' && currentTarget.contains(target as Node)) onLeave?.();
      }}
    >
      <span role="status">
        {matching ? 'All ' : ''}
        {plural(n, 'run')} {matching ? 'that match ' : ''}selected
        {notShown > 0 && `, ${formatInteger(notShown)} not shown`}
        {impossible !== undefined && `. ${impossible}`}
      </span>
      {(impossible ?? tooMany) !== undefined ? (
        <PermittedButton variant="default" denied={impossible ?? tooMany}>
          Compare
        </PermittedButton>
      ) : (
        n > 1 && (
          <ButtonLink
            to="/"
            search={{
              list: 'beside',
              ...(matching ? { q: matching.filter } : { runs: selected.join(',') }),
              ...(grouped ? { group: 'seed' } : {}),
            }}
          >
            Compare
          </ButtonLink>
        )
      )}
      {ids.size === 2 && !matching && !grouped && (
        <ButtonLink variant="subtle" to="/diff" search={{ runs: selected.join(',') }}>
          Diff
        </ButtonLink>
      )}
      {ids.size === 1 &&
        first &&
        canFork &&
        (denied === undefined ? (
          <ButtonLink variant="subtle" to="/new" search={{ fork: first }}>
            Fork
          </ButtonLink>
        ) : (
          <PermittedButton variant="subtle" denied={denied}>
            Fork
          </PermittedButton>
        ))}
      {actions.map((action) => (
        <PermittedButton
          key={action}
          denied={denied ?? impossible}
          variant="subtle"
          color="gray"
          {...(BULK_ACTIONS[action]?.danger ? { className: classes.danger } : {})}
          onClick={({ currentTarget }) => {
            opener.current = currentTarget;
            setAction(action);
          }}
        >
          {BULK_ACTIONS[action]?.label}…
        </PermittedButton>
      ))}
      {impossible === undefined ? (
        <ExportMenu target={target} />
      ) : (
        <PermittedButton variant="default" denied={impossible}>
          Export
        </PermittedButton>
      )}
      <Button variant="subtle" onClick={onClear}>
        Clear
      </Button>
      {action && <BulkDialog action={action} target={target} n={n} onClose={close} onDone={done} />}
    </div>
  );
}

type SelectEverythingProps = {
  /** The ids of the loaded rows. */
  loaded: readonly string[];
  /** The number of runs that match. */
  total: number;
  selection: Selection;
};

/** Once all loaded rows are selected, offers those that are not loaded as well. */
export function SelectEverything({ loaded, total, selection }: SelectEverythingProps) {
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
