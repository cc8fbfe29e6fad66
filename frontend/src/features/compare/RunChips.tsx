import { ActionIcon, Autocomplete, useComputedColorScheme } from '@mantine/core';
import { IconEye, IconEyeOff, IconX } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { runsQuery, type Run } from '@/api/runs';
import { runColour } from '@/components/chart/colours';
import classes from './compare.module.css';

type Props = {
  runs: readonly Run[];
  hidden: ReadonlySet<string>;
  onHide: (id: string, hide: boolean) => void;
  onAdd: (id: string) => void;
  onRemove: (id: string) => void;
};

/** The compared runs: each can be hidden, taken out, and others put in. */
export function RunChips({ runs, hidden, onHide, onAdd, onRemove }: Props) {
  const scheme = useComputedColorScheme('light');
  return (
    <ul className={classes.chips} aria-label="Compared runs">
      {runs.map((run) => {
        const away = hidden.has(run.id);
        return (
          <li key={run.id} className={classes.chip} data-hidden={away || undefined}>
            <span
              className={classes.swatch}
              style={{ background: runColour(run.id, scheme) }}
              aria-hidden="true"
            />
            <Link to="/runs/$runId" params={{ runId: run.id }} className="ellipsis" title={run.name}>
              {run.name}
            </Link>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`${away ? 'Show' : 'Hide'} ${run.name}`}
              onClick={() => onHide(run.id, !away)}
            >
              {away ? <IconEyeOff size={14} /> : <IconEye size={14} />}
            </ActionIcon>
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
      <li>
        <AddRun taken={runs} onAdd={onAdd} />
      </li>
    </ul>
  );
}

/** Finds a run by anything in it and puts it in. */
function AddRun({ taken, onAdd }: { taken: readonly Run[]; onAdd: (id: string) => void }) {
  const [typed, setTyped] = useState('');
  const search = typed.trim();
  const { data } = useInfiniteQuery(runsQuery({ limit: 20, archived: 'all', ...(search ? { search } : {}) }));
  const ids = new Set(taken.map(({ id }) => id));
  const found = data?.pages[0]?.items.filter(({ id }) => !ids.has(id)) ?? [];
  // Names need not be unique, so an option ends in what is.
  const options = new Map(found.map((run) => [`${run.name} (${run.id.slice(-6)})`, run.id]));
  return (
    <Autocomplete
      size="xs"
      w={260}
      aria-label="Add a run"
      placeholder="Add a run"
      data={[...options.keys()]}
      filter={({ options: all }) => all}
      value={typed}
      onChange={setTyped}
      onOptionSubmit={(option) => {
        const id = options.get(option);
        if (id) onAdd(id);
        setTimeout(() => setTyped(''));
      }}
    />
  );
}
