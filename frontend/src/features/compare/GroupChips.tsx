import { ActionIcon } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import type { MouseEvent, RefObject } from 'react';
import type { GroupStatistics } from '@/api/comparisons';
import type { Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import { Name } from '@/components/text';
import { plural } from '@/lib/format';
import classes from './compare.module.css';
import { useDropTarget } from './dragAndDrop';

type Props = {
  groups: readonly GroupStatistics[];
  styles: Styles;
  onStyle: (group: string, style: number) => void;
  hidden: ReadonlySet<string>;
  onHide: (group: string, hide: boolean) => void;
  /** A run is dropped here. */
  onAdd: (id: string) => void;
  onRemove: (runs: readonly string[]) => void;
  /** The search for more runs. */
  finder: RefObject<HTMLInputElement | null>;
};

/** The compared configs with their numbers of seeds, which can be hidden and removed. */
export function GroupChips({ groups, styles, onStyle, hidden, onHide, onAdd, onRemove, finder }: Props) {
  /** Removes a config and moves the focus to the next chip, or else to the search. */
  const remove = ({ currentTarget }: MouseEvent, runs: readonly string[]): void => {
    const chip = currentTarget.closest('li');
    const next = chip?.nextElementSibling ?? chip?.previousElementSibling;
    (next?.querySelector<HTMLElement>('[data-remove]') ?? finder.current)?.focus();
    onRemove(runs);
  };
  return (
    <ul className={classes.chips} aria-label="Compared configs" {...useDropTarget(onAdd)}>
      {groups.map(({ id, name, runs }) => {
        const isHidden = hidden.has(id);
        return (
          <li key={id} className={classes.chip} data-hidden={isHidden || undefined}>
            <StylePicker name={name} style={styles.get(id) ?? 0} onStyle={(to) => onStyle(id, to)} />
            <span className="grow">
              <Name name={name} />
            </span>
            <span className="muted nowrap">{plural(runs.length, 'seed')}</span>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`${isHidden ? 'Show' : 'Hide'} ${name}`}
              onClick={() => onHide(id, !isHidden)}
            >
              {isHidden ? <IconEyeOff size={14} /> : <IconEye size={14} />}
            </ActionIcon>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`Remove ${name}`}
              onClick={(event) =>
                remove(
                  event,
                  runs.map(({ run }) => run),
                )
              }
              data-remove
            >
              <IconX size={14} />
            </ActionIcon>
          </li>
        );
      })}
    </ul>
  );
}
