import { ActionIcon, useComputedColorScheme } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { MouseEvent, RefObject } from 'react';
import type { Run } from '@/api/runs';
import { RunName } from '@/components/RunName';
import { styles } from '@/components/chart/colours';
import { Swatch } from '@/components/chart/Swatch';
import classes from './compare.module.css';
import { carries, useDrop } from './dragging';

type Props = {
  runs: readonly Run[];
  /** Of all that are chosen; some may be on their way. */
  ids: readonly string[];
  /** Ids in the address that no run has, or has any more. */
  gone: readonly string[];
  /** Whether the chart draws groups of them: then none has a line of its own. */
  grouped: boolean;
  hidden: ReadonlySet<string>;
  onHide: (id: string, hide: boolean) => void;
  onAdd: (id: string) => void;
  onRemove: (id: string) => void;
  /** The box that finds more runs. */
  finder: RefObject<HTMLInputElement | null>;
};

/** The compared runs: each can be hidden and taken out; one that is dropped here is put in. */
export function RunChips({ runs, ids, gone, grouped, hidden, onHide, onAdd, onRemove, finder }: Props) {
  const scheme = useComputedColorScheme('light');
  const looks = styles(ids, scheme);
  /** The focus goes on to the next chip, or where there is none to where others are found. */
  const remove = ({ currentTarget }: MouseEvent, id: string): void => {
    const chip = currentTarget.closest('li');
    const next = chip?.nextElementSibling ?? chip?.previousElementSibling;
    const button = next?.querySelector<HTMLElement>('[data-out]');
    (button ?? finder.current)?.focus();
    onRemove(id);
  };
  return (
    <ul className={classes.chips} aria-label="Compared runs" {...useDrop(onAdd)}>
      {ids.length + gone.length === 0 && <li className="muted">Drag a run here, or press + at one below.</li>}
      {runs.map((run) => {
        const away = !grouped && hidden.has(run.id);
        return (
          <li key={run.id} className={classes.chip} data-hidden={away || undefined} {...carries(run.id)}>
            {!grouped && <Swatch {...looks.get(run.id)} />}
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              className="ellipsis"
              aria-label={run.name}
              title={run.name}
              draggable={false}
            >
              <RunName name={run.name} />
            </Link>
            {!grouped && (
              <ActionIcon
                size={20}
                variant="subtle"
                color="gray"
                aria-label={`${away ? 'Show' : 'Hide'} ${run.name}`}
                onClick={() => onHide(run.id, !away)}
              >
                {away ? <IconEyeOff size={14} /> : <IconEye size={14} />}
              </ActionIcon>
            )}
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`Take ${run.name} out`}
              onClick={(event) => remove(event, run.id)}
              data-out
            >
              <IconX size={14} />
            </ActionIcon>
          </li>
        );
      })}
      {gone.map((id) => (
        <li key={id} className={classes.chip}>
          <span className="ellipsis muted" title={`There is no run ${id}, or no longer`}>
            deleted run <span className="num">{id.slice(-6)}</span>
          </span>
          <ActionIcon
            size={20}
            variant="subtle"
            color="gray"
            aria-label={`Take the deleted run ${id} out`}
            onClick={(event) => remove(event, id)}
            data-out
          >
            <IconX size={14} />
          </ActionIcon>
        </li>
      ))}
    </ul>
  );
}
