import { Combobox, TextInput, useCombobox } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { meQuery } from '@/api/account';
import { algorithmsQuery, environmentsQuery } from '@/api/catalogue';
import { hostsQuery } from '@/api/hosts';
import { runFieldsQuery, type RunField } from '@/api/runFields';
import { Keys } from '@/components/Keys';
import { workspaceSearch } from '@/components/run/search';
import { served } from '@/lib/base';
import { isDialogOpen } from '@/lib/hooks';
import { useRecent } from '@/lib/recent';
import { savedList, useSavedList } from '@/lib/savedList';
import { STATES } from '@/lib/run';
import { GLOBAL } from '@/lib/shortcuts';
import { defined } from '@/lib/search';
import { complete, isUnfinished, type Values } from './completion';
import classes from './shell.module.css';

const DEBOUNCE_MS = 300;

const hasValues = ({ values }: RunField): boolean => values.length > 0;

/** The search for runs, on every page; `/` focuses it. It completes fields and values of the query language. */
export function SearchBox() {
  const navigate = useNavigate();
  const isWorkspace = useLocation({ select: ({ pathname }) => pathname === '/' });
  const address = useSearch({ strict: false });
  // A query replaces runs that are named one by one.
  const isListed = isWorkspace && address.runs === undefined;
  const saved = useSavedList();
  // Other pages have searches of their own.
  const q = isListed ? address.q : saved?.q;
  const [typed, setTyped] = useState(q ?? '');
  const [submitted, setSubmitted] = useState(q);
  const [previous, setPrevious] = useState(q);
  const [caret, setCaret] = useState(0);
  const [focused, setFocused] = useState(false);
  const [recent, addRecent] = useRecent('queries', useQuery(meQuery).data?.id);
  const fields = useQuery({ ...runFieldsQuery, enabled: focused }).data ?? [];
  const extra = fields.filter(({ origin }) => origin !== 'run');
  const values = {
    ...useValues(focused),
    ...Object.fromEntries(fields.filter(hasValues).map((field) => [field.name, field.values])),
  };
  const combobox = useCombobox();
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  // Navigating back or forward replaces the text; the box's own submission may have been extended since.
  if (q !== previous) {
    setPrevious(q);
    if (q !== submitted) {
      setSubmitted(q);
      setTyped(q ?? '');
    }
  }
  useHotkeys([
    [
      GLOBAL.search.press,
      () => {
        if (!isDialogOpen()) input.current?.focus();
      },
    ],
  ]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const search = (text: string): void => {
    clearTimeout(timer.current);
    const query = text.trim() || undefined;
    setSubmitted(query);
    const isOnList = isListed && location.pathname === served('/');
    const list = savedList();
    if (list) {
      list.change(query);
      return;
    }
    void navigate({
      to: '/',
      search: (before) => defined({ ...(isOnList ? workspaceSearch(before) : {}), q: query }),
      replace: isOnList,
    });
  };
  /** Searches while typing, on the runs page only, unless the text changes in the meantime. */
  const searchSoon = (text: string): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if ((savedList() || (location.pathname === served('/') && isListed)) && input.current?.value === text)
        search(text);
    }, DEBOUNCE_MS);
  };
  const type = (text: string, at: number): void => {
    setTyped(text);
    setCaret(at);
    combobox.openDropdown();
    combobox.resetSelectedOption();
    if (isUnfinished(text, at, values, extra)) clearTimeout(timer.current);
    else searchSoon(text);
  };
  const leave = (): void => {
    combobox.closeDropdown();
    if (typed.trim() !== (q ?? '')) searchSoon(typed);
  };
  /** Takes a completion. */
  const accept = (option: string): void => {
    // The text after the caret is unchanged.
    const at = option.length - (typed.length - caret);
    flushSync(() => type(option, at));
    input.current?.focus();
    input.current?.setSelectionRange(at, at);
  };
  /** Searches at once, and offers the query again. */
  const submit = (text: string): void => {
    combobox.closeDropdown();
    search(text);
    addRecent(text.trim());
  };
  const isEmpty = typed.trim() === '';
  const options = isEmpty ? recent.slice() : complete(typed, caret, values, extra);
  const unfinished = isUnfinished(typed, caret, values, extra);

  return (
    <form
      role="search"
      className={classes.search}
      onSubmit={(event) => {
        event.preventDefault();
        submit(typed);
      }}
    >
      <Combobox
        store={combobox}
        shadow="md"
        onOptionSubmit={(option) => {
          if (!isEmpty) accept(option);
          else {
            setTyped(option);
            submit(option);
          }
        }}
      >
        <Combobox.Target>
          <TextInput
            ref={input}
            type="search"
            aria-label="Search runs"
            placeholder="Search runs…"
            rightSection={typed === '' && !focused ? <Keys keys={GLOBAL.search.keys} /> : undefined}
            rightSectionPointerEvents="none"
            autoComplete="off"
            spellCheck={false}
            leftSection={<IconSearch size={14} aria-hidden="true" />}
            value={typed}
            onFocus={() => {
              setFocused(true);
              if (isEmpty) combobox.openDropdown();
            }}
            onBlur={() => {
              setFocused(false);
              leave();
            }}
            onKeyDown={(event) => {
              const [first] = options;
              const takes = event.key === 'Enter' ? unfinished : event.key === 'Tab' && !event.shiftKey;
              if (
                takes &&
                first &&
                !isEmpty &&
                combobox.dropdownOpened &&
                combobox.getSelectedOptionIndex() < 0
              ) {
                event.preventDefault();
                accept(first);
                return;
              }
              if (event.key !== 'Escape' || !combobox.dropdownOpened || options.length === 0) return;
              // By default the browser clears a search input.
              event.preventDefault();
              leave();
            }}
            onChange={({ currentTarget }) =>
              type(currentTarget.value, currentTarget.selectionStart ?? currentTarget.value.length)
            }
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={options.length === 0 && !unfinished}>
          {options.length === 0 && (
            <Combobox.Empty>Unfinished: add a value, as in score&gt;10 or tag:baseline.</Combobox.Empty>
          )}
          <Combobox.Options mah={260} style={{ overflowY: 'auto' }}>
            <Combobox.Group label={isEmpty ? 'Recent' : undefined}>
              {options.map((option) => (
                <Combobox.Option key={option} value={option} className="num">
                  {option}
                </Combobox.Option>
              ))}
            </Combobox.Group>
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
    </form>
  );
}

/** The known values of the query's fields. */
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
    demo: ['true', 'false'],
  };
}
