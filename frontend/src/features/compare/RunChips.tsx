import { ActionIcon, useComputedColorScheme } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { Run } from '@/api/runs';
import { runStyles, type Style } from '@/components/chart/colours';
import classes from './compare.module.css';
import { carries, useDrop } from './dragging';

type Props = {
  runs: readonly Run[];
  /** Whether none is chosen; those that are may be on their way. */
  empty: boolean;
  /** Whether the chart draws groups of them: then none has a line of its own. */
  grouped: boolean;
  hidden: ReadonlySet<string>;
  onHide: (id: string, hide: boolean) => void;
  onAdd: (id: string) => void;
  onRemove: (id: string) => void;
};

/** The compared runs: each can be hidden and taken out; one that is dropped here is put in. */
export function RunChips({ runs, empty, grouped, hidden, onHide, onAdd, onRemove }: Props) {
  const scheme = useComputedColorScheme('light');
  const styles = runStyles(
    runs.map(({ id }) => id),
    scheme,
  );
  return (
    <ul className={classes.chips} aria-label="Compared runs" {...useDrop(onAdd)}>
      {empty && <li className="muted">Drag a run here, or press + at one below.</li>}
      {runs.map((run) => {
        const away = !grouped && hidden.has(run.id);
        return (
          <li key={run.id} className={classes.chip} data-hidden={away || undefined} {...carries(run.id)}>
            {!grouped && <Swatch {...styles.get(run.id)} />}
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              className="ellipsis"
              title={run.name}
              draggable={false}
            >
              {run.name}
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
              onClick={() => onRemove(run.id)}
            >
              <IconX size={14} />
            </ActionIcon>
          </li>
        );
      })}
    </ul>
  );
}

/** How a run's line is drawn. */
function Swatch({ colour, dash }: Partial<Style>) {
  return (
    <svg width="16" height="4" className={classes.line} aria-hidden="true">
      <path d="M0 2H16" stroke={colour} strokeWidth="3" strokeDasharray={dash} />
    </svg>
  );
}
