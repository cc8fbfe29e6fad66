import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { Host } from '@/api/hosts';
import { environmentImage, findEnvironments, missingExtra, unavailableReason } from '@/lib/environments';
import { plural } from '@/lib/format';
import { isTouched } from '@/lib/hooks';
import classes from './launch.module.css';

type Environment = { id: string; title: string; family: string; extra: string | null };

type Props = {
  environments: readonly Environment[];
  /** Undefined until they are known. */
  hosts: readonly Host[] | undefined;
  value: string;
  onChange: (id: string) => void;
};

/**
 * A searchable gallery of environments; arrows move the selection, Enter selects the first match. The search has the focus
 * when the page opens, so that few tabs lead from there to the start button.
 */
export function EnvironmentPicker({ environments, hosts, value, onChange }: Props) {
  const [typed, setTyped] = useState('');
  const matching = useMemo(() => findEnvironments(environments, typed), [environments, typed]);
  const search = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const listId = useId();
  const isFound = matching.some(({ id }) => id === value);

  useEffect(() => {
    // A touch device would open its keyboard, and what the user types into another field must go on.
    const typing = document.activeElement?.matches('input, select, textarea');
    if (!typing && !isTouched()) search.current?.focus({ preventScroll: true });
  }, []);

  useEffect(() => {
    // scrollIntoView would scroll the page as well.
    const selected = list.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (list.current && selected) {
      const { clientHeight, scrollTop } = list.current;
      const top = selected.offsetTop - list.current.offsetTop;
      if (top < scrollTop || top + selected.offsetHeight > scrollTop + clientHeight) {
        list.current.scrollTop = top - clientHeight / 2;
      }
    }
  }, [value, matching]);

  const onKey = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const index = matching.findIndex(({ id }) => id === value);
    if (by === undefined && event.key !== 'Enter') return;
    // Unlike in the other fields, Enter does not start the run: it ends a search.
    event.preventDefault();
    const next =
      by === undefined ? (index < 0 ? matching[0] : undefined) : matching[index < 0 ? 0 : index + by];
    if (next) onChange(next.id);
  };

  return (
    <div style={{ display: 'grid', gap: 8 }}>
      <TextInput
        ref={search}
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-label="Search environments"
        aria-controls={listId}
        aria-activedescendant={isFound ? listId + value : undefined}
        placeholder={`Search ${plural(environments.length, 'environment')}`}
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        onKeyDown={onKey}
      />
      {/* Not in the tab order: the input's arrow keys move in it. */}
      <div
        id={listId}
        role="listbox"
        aria-label="Environment"
        ref={list}
        tabIndex={-1}
        className={classes.environmentList}
      >
        {matching.map((environment) => (
          <button
            key={environment.id}
            id={listId + environment.id}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={environment.id === value}
            className={classes.environment}
            data-lacking={missingExtra(environment, hosts) !== null}
            title={missingExtra(environment, hosts) ?? environment.id}
            onClick={() => onChange(environment.id)}
          >
            <Thumbnail id={environment.id} />
            <span className={classes.environmentTitle}>{environment.title}</span>
            <span className="muted">
              {missingExtra(environment, hosts)
                ? 'not installed'
                : unavailableReason(environment, hosts) === null
                  ? environment.family
                  : 'no host'}
            </span>
          </button>
        ))}
        {matching.length === 0 && <p className={classes.none}>No environment matches “{typed}”.</p>}
      </div>
    </div>
  );
}

/** An environment's image, loaded once it scrolls into view; a custom environment has a plain ground. */
function Thumbnail({ id }: { id: string }) {
  const src = environmentImage(id);
  return (
    <span className={classes.thumbnail}>
      {src && <img src={src} alt="" loading="lazy" draggable={false} />}
    </span>
  );
}
