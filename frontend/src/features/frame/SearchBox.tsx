import { Combobox, TextInput, useCombobox } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { algorithmsQuery, environmentsQuery } from '@/api/catalog';
import { hostsQuery } from '@/api/hosts';
import { defined } from '@/lib/defined';
import { STATES } from '@/lib/states';
import { complete, isUnfinished, type Values } from './completion';
import classes from './Frame.module.css';

const WAIT_MS = 300;

/** Searches the runs, from any page; `/` goes there. Knows the fields of the query language. */
export function SearchBox() {
  const navigate = useNavigate();
  const { q } = useSearch({ strict: false });
  const [typed, setTyped] = useState(q ?? '');
  const [asked, setAsked] = useState(q);
  const [shown, setShown] = useState(q);
  const [caret, setCaret] = useState(0);
  const [used, setUsed] = useState(false);
  const values = useValues(used);
  const combobox = useCombobox();
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  // Back and forward change the address without a key being pressed; what was asked here may have grown since.
  if (q !== shown) {
    setShown(q);
    if (q !== asked) {
      setAsked(q);
      setTyped(q ?? '');
    }
  }
  useHotkeys([['/', () => box.current?.focus()]]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const search = (text: string): void => {
    clearTimeout(timer.current);
    const to = text.trim() || undefined;
    setAsked(to);
    void navigate({
      to: '/',
      search: (before) => defined({ ...before, q: to }),
      replace: location.pathname === '/',
    });
  };
  /** Only the list of runs follows what is typed, unless the box has come to hold something else. */
  const searchSoon = (text: string): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if (location.pathname === '/' && box.current?.value === text) search(text);
    }, WAIT_MS);
  };
  const type = (text: string, at: number): void => {
    setTyped(text);
    setCaret(at);
    combobox.openDropdown();
    combobox.resetSelectedOption();
    if (isUnfinished(text, at, values)) clearTimeout(timer.current);
    else searchSoon(text);
  };
  const leave = (): void => {
    combobox.closeDropdown();
    if (typed.trim() !== (q ?? '')) searchSoon(typed);
  };
  const options = complete(typed, caret, values);

  return (
    <form
      role="search"
      className={classes.search}
      onSubmit={(event) => {
        event.preventDefault();
        combobox.closeDropdown();
        search(typed);
      }}
    >
      <Combobox
        store={combobox}
        onOptionSubmit={(option) => {
          // What stands behind the caret is the same as before.
          const at = option.length - (typed.length - caret);
          flushSync(() => type(option, at));
          box.current?.focus();
          box.current?.setSelectionRange(at, at);
        }}
      >
        <Combobox.Target>
          <TextInput
            ref={box}
            type="search"
            aria-label="Search runs"
            placeholder="Search, or score>10   /"
            autoComplete="off"
            spellCheck={false}
            leftSection={<IconSearch size={14} aria-hidden="true" />}
            value={typed}
            onFocus={() => setUsed(true)}
            onBlur={leave}
            onKeyDown={(event) => {
              if (event.key !== 'Escape' || !combobox.dropdownOpened || options.length === 0) return;
              // The browser would empty the box.
              event.preventDefault();
              leave();
            }}
            onChange={({ currentTarget }) =>
              type(currentTarget.value, currentTarget.selectionStart ?? currentTarget.value.length)
            }
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={options.length === 0}>
          <Combobox.Options mah={260} style={{ overflowY: 'auto' }}>
            {options.map((option) => (
              <Combobox.Option key={option} value={option} className="num">
                {option}
              </Combobox.Option>
            ))}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
    </form>
  );
}

/** What fields are known to hold. */
function useValues(enabled: boolean): Values {
  const algorithms = useQuery({ ...algorithmsQuery, enabled });
  const environments = useQuery({ ...environmentsQuery, enabled });
  const hosts = useQuery({ ...hostsQuery, enabled });
  return {
    algorithm: algorithms.data?.map(({ id }) => id) ?? [],
    environment: environments.data?.map(({ id }) => id) ?? [],
    host: hosts.data?.items.map(({ id }) => id) ?? [],
    state: STATES,
    queue: ['cpu', 'gpu'],
    archived: ['true', 'false'],
  };
}
