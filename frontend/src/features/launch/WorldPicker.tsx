import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { plural } from '@/lib/format';
import { findWorlds } from '@/lib/world';
import classes from './launch.module.css';

export type World = { id: string; title: string; family: string };

type Props = { worlds: readonly World[]; value: string; onChange: (id: string) => void };

/** A searchable list of worlds; arrows move, Enter chooses. */
export function WorldPicker({ worlds, value, onChange }: Props) {
  const [typed, setTyped] = useState('');
  const found = useMemo(() => findWorlds(worlds, typed), [worlds, typed]);
  const list = useRef<HTMLDivElement>(null);

  useEffect(() => {
    // Only the list scrolls: scrollIntoView would move the page too.
    const chosen = list.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (list.current && chosen) {
      const { clientHeight, scrollTop } = list.current;
      const top = chosen.offsetTop - list.current.offsetTop;
      if (top < scrollTop || top + chosen.offsetHeight > scrollTop + clientHeight) {
        list.current.scrollTop = top - clientHeight / 2;
      }
    }
  }, [value, found]);

  const onKey = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = found.findIndex((world) => world.id === value);
    const next =
      by === undefined
        ? event.key === 'Enter' && at < 0
          ? found[0]
          : undefined
        : found[at < 0 ? 0 : at + by];
    if (by !== undefined || event.key === 'Enter') event.preventDefault();
    if (next) onChange(next.id);
  };

  return (
    <div style={{ display: 'grid', gap: 8 }}>
      <TextInput
        type="search"
        aria-label="Search worlds"
        aria-controls="world-list"
        placeholder={`Search ${plural(worlds.length, 'world')}`}
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        onKeyDown={onKey}
      />
      <div
        id="world-list"
        role="listbox"
        aria-label="World"
        ref={list}
        tabIndex={0}
        className={classes.worldList}
        onKeyDown={onKey}
      >
        {found.map((world) => (
          <button
            key={world.id}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={world.id === value}
            className={classes.world}
            title={world.id}
            onClick={() => onChange(world.id)}
          >
            <span className="ellipsis">{world.title}</span>
            <span className="muted">{world.family}</span>
          </button>
        ))}
        {found.length === 0 && <p className={classes.none}>No world has “{typed}” in its name.</p>}
      </div>
    </div>
  );
}
