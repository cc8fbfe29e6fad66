import { ActionIcon } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { MouseEvent, RefObject } from 'react';
import { type ViewNames } from '@/api/names';
import type { Run } from '@/api/runs';
import { searchOfStyle, type Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import { Name } from '@/components/text';
import classes from './compare.module.css';
import { dragSource, useDropTarget } from './dragAndDrop';

type Props = {
  runs: readonly Run[];
  names: ViewNames;
  /** The ids of all compared runs, of which some may still be loading. */
  ids: readonly string[];
  /** Ids in the URL of runs that do not exist. */
  missing: readonly string[];
  /** The styles of the runs' lines. */
  styles: Styles;
  onStyle: (id: string, style: number) => void;
  hidden: ReadonlySet<string>;
  onHide: (id: string, hide: boolean) => void;
  onAdd: (id: string) => void;
  onRemove: (id: string) => void;
  /** The search for more runs. */
  finder: RefObject<HTMLInputElement | null>;
};

/** The compared runs, which can be hidden and removed; a run dropped here is added. */
export function RunChips({
  runs,
  names,
  ids,
  missing,
  styles,
  onStyle,
  hidden,
  onHide,
  onAdd,
  onRemove,
  finder,
}: Props) {
  /** Removes a run and moves the focus to the next chip, or else to the search. */
  const remove = ({ currentTarget }: MouseEvent, id: string): void => {
    const chip = currentTarget.closest('li');
    const next = chip?.nextElementSibling ?? chip?.previousElementSibling;
    const button = next?.querySelector<HTMLElement>('[data-remove]');
    (button ?? finder.current)?.focus();
    onRemove(id);
  };
  return (
    <ul className={classes.chips} aria-label="Compared runs" {...useDropTarget(onAdd)}>
      {ids.length + missing.length === 0 && (
        <li className="muted">No runs yet: press + beside one above, or drag it here.</li>
      )}
      {runs.map((run) => {
        const style = styles.get(run.id) ?? 0;
        const isHidden = hidden.has(run.id);
        const label = names.label(run);
        return (
          <li
            key={run.id}
            className={classes.chip}
            data-hidden={isHidden || undefined}
            {...dragSource(run.id)}
          >
            <StylePicker name={label} style={style} onStyle={(to) => onStyle(run.id, to)} />
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              search={searchOfStyle(style)}
              className="whole"
              title={run.name}
              aria-label={label}
              draggable={false}
            >
              <Name name={names.of(run)} />
            </Link>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`${isHidden ? 'Show' : 'Hide'} ${label}`}
              onClick={() => onHide(run.id, !isHidden)}
            >
              {isHidden ? <IconEyeOff size={14} /> : <IconEye size={14} />}
            </ActionIcon>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`Remove ${label}`}
              onClick={(event) => remove(event, run.id)}
              data-remove
            >
              <IconX size={14} />
            </ActionIcon>
          </li>
        );
      })}
      {runs.length === 0 &&
        ids.map((id) => <li key={id} className={classes.chip} data-loading aria-hidden="true" />)}
      {missing.map((id) => (
        <li key={id} className={classes.chip}>
          <span className="ellipsis muted" title={`Run ${id} does not exist or has been deleted`}>
            deleted run <span className="num">{id.slice(-6)}</span>
          </span>
          <ActionIcon
            size={20}
            variant="subtle"
            color="gray"
            aria-label={`Remove deleted run ${id}`}
            onClick={(event) => remove(event, id)}
            data-remove
          >
            <IconX size={14} />
          </ActionIcon>
        </li>
      ))}
    </ul>
  );
}
