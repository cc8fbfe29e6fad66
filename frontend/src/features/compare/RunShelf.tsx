import { ActionIcon, TextInput } from '@mantine/core';
import { IconPlus, IconSearch } from '@tabler/icons-react';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState, type RefObject } from 'react';
import { runsQuery } from '@/api/runs';
import { RunName } from '@/components/RunName';
import { StateMark } from '@/components/StateMark';
import classes from './compare.module.css';
import { carries, useDrop } from './dragging';

/** Enough to choose from; whoever wants another one types a part of its name. */
const SHOWN = 20;
const MOST = 100;

type Props = {
  /** Ids of the compared runs, which are not on it. */
  compared: readonly string[];
  onAdd: (id: string) => void;
  onRemove: (id: string) => void;
  finder: RefObject<HTMLInputElement | null>;
};

/** Runs that could be compared too: each can be put in; one that is dropped here is taken out. */
export function RunShelf({ compared, onAdd, onRemove, finder }: Props) {
  const [typed, setTyped] = useState('');
  const search = typed.trim();
  const { data } = useInfiniteQuery({
    // The newest may all be compared already.
    ...runsQuery({
      limit: Math.min(MOST, SHOWN + compared.length),
      archived: 'all',
      ...(search ? { search } : {}),
    }),
    placeholderData: keepPreviousData,
  });
  const others = data?.pages[0]?.items.filter(({ id }) => !compared.includes(id)) ?? [];
  return (
    <div className={classes.shelf} {...useDrop(onRemove)}>
      <TextInput
        ref={finder}
        type="search"
        size="xs"
        w={180}
        aria-label="Find runs to compare"
        placeholder="Find runs to compare"
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <ul className={classes.others} aria-label="Runs that are not compared">
        {data && others.length === 0 && (
          <li className="muted">
            {search
              ? 'No other run fits.'
              : (data.pages[0]?.total ?? 0) > MOST
                ? 'Type a part of the name of another.'
                : 'No other run yet.'}
          </li>
        )}
        {others.map((run) => (
          <li key={run.id} className={classes.chip} {...carries(run.id)}>
            <StateMark state={run.state} reason={run.state_reason} />
            <span className="ellipsis" title={run.name}>
              <RunName name={run.name} />
            </span>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`Compare ${run.name}`}
              onClick={() => onAdd(run.id)}
            >
              <IconPlus size={14} />
            </ActionIcon>
          </li>
        ))}
      </ul>
    </div>
  );
}
