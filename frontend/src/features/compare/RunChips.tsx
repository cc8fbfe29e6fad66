import { ActionIcon } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { MouseEvent, RefObject } from 'react';
import type { Run } from '@/api/runs';
import { Swatch, useLineStyles } from '@/components/chart/lineStyles';
import { searchOfStyle, type Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import { TruncatedName } from '@/components/text';
import { shortNames } from '@/lib/shortNames';
import classes from './compare.module.css';
import { dragSource, useDropTarget } from './dragAndDrop';

type Props = {
  runs: readonly Run[];
  /** The ids of all compared runs, of which some may still be loading. */
  ids: readonly string[];
  /** Ids in the URL of runs that do not exist. */
  missing: readonly string[];
  /** Whether the chart shows groups, so that single runs have no line. */
  grouped: boolean;
  /** The styles of the runs' lines, or of their groups' lines once the groups are known. */
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
  ids,
  missing,
  grouped,
  styles,
  onStyle,
  hidden,
  onHide,
  onAdd,
  onRemove,
  finder,
}: Props) {
  const names = shortNames(runs);
  const lookOf = useLineStyles(grouped);
  /** Removes a run and moves the focus to the next chip, or else to the search. */
  const remove = ({ currentTarget }: MouseEvent, id: string): void => {
    const chip = currentTarget.closest('li');
    const next = chip?.nextElementSibling ?? chip?.previousElementSibling;
    const button = next?.querySelector<HTMLElement>('[data-remove]');
    (button ?? finder.current)?.focus();
    onRemove(id);
  };
  return (
    <ul
      className={classes.chips}
      data-grouped={grouped || undefined}
      aria-label="Compared runs"
      {...useDropTarget(onAdd)}
    >
      {ids.length + missing.length === 0 && (
        <li className="muted">No runs yet: press + beside one above, or drag it here.</li>
      )}
      {runs.map((run) => {
        const style = styles.get(run.id) ?? 0;
        const isHidden = !grouped && hidden.has(run.id);
        const shown = names.get(run.id) ?? run.name;
        // Seeds may have the same name, which the chip completes.
        const label = run.name.includes(shown) ? run.name : `${run.name}: ${shown}`;
        return (
          <li
            key={run.id}
            className={classes.chip}
            data-hidden={isHidden || undefined}
            {...dragSource(run.id)}
          >
            {grouped ? (
              <Swatch {...(styles.has(run.id) ? lookOf(style) : { colour: 'transparent' })} />
            ) : (
              <StylePicker name={label} style={style} onStyle={(to) => onStyle(run.id, to)} />
            )}
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              search={searchOfStyle(style)}
              className="ellipsis"
              aria-label={label}
              draggable={false}
            >
              <TruncatedName name={shown} title={run.name} />
            </Link>
            {!grouped && (
              <ActionIcon
                size={20}
                variant="subtle"
                color="gray"
                aria-label={`${isHidden ? 'Show' : 'Hide'} ${label}`}
                onClick={() => onHide(run.id, !isHidden)}
              >
                {isHidden ? <IconEyeOff size={14} /> : <IconEye size={14} />}
              </ActionIcon>
            )}
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
