import { ActionIcon, TextInput } from '@mantine/core';
import { IconPlus, IconSearch } from '@tabler/icons-react';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState, type RefObject } from 'react';
import { useNames } from '@/api/names';
import { runsQuery } from '@/api/runs';
import { StateBadge } from '@/components/run/StateBadge';
import { Name } from '@/components/text';
import classes from './compare.module.css';
import { dragSource } from './dragAndDrop';

/** The number of runs offered without a search. */
export const N_OFFERED = 20;
const MAX_LIMIT = 100;

type Props = {
  /** The ids of the compared runs, which are not offered. */
  compared: readonly string[];
  onAdd: (id: string) => void;
  finder: RefObject<HTMLInputElement | null>;
};

/** Searches for further runs to compare. */
export function RunFinder({ compared, onAdd, finder }: Props) {
  const [typed, setTyped] = useState('');
  const search = typed.trim();
  const { data } = useInfiniteQuery({
    // The latest runs may all be compared already.
    ...runsQuery({
      limit: Math.min(MAX_LIMIT, N_OFFERED + compared.length),
      archived: 'all',
      ...(search ? { search } : {}),
    }),
    placeholderData: keepPreviousData,
  });
  const others = data?.pages[0]?.items.filter(({ id }) => !compared.includes(id)) ?? [];
  const names = useNames(others);
  return (
    <div className={classes.finder}>
      <TextInput
        ref={finder}
        type="search"
        size="xs"
        aria-label="Find runs to compare"
        placeholder="Find runs to compare"
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <ul className={classes.others} aria-label="Other runs">
        {data && others.length === 0 && (
          <li className="muted">
            {search
              ? 'No other matching runs.'
              : (data.pages[0]?.total ?? 0) > MAX_LIMIT
                ? 'Search for other runs by name.'
                : compared.length === 0
                  ? 'There are no runs yet.'
                  : 'No other runs.'}
          </li>
        )}
        {others.map((run) => (
          <li key={run.id} className={classes.chip} {...dragSource(run.id)}>
            <StateBadge state={run.state} reason={run.state_reason} />
            <span className="grow">
              <Name name={names.of(run)} title={run.name} />
            </span>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              aria-label={`Compare ${names.label(run)}`}
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
