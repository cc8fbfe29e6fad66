import { TextInput } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { defined } from '@/lib/defined';
import classes from './Frame.module.css';

const WAIT_MS = 250;

/** Searches the runs, from any page; `/` goes there. */
export function SearchBox() {
  const navigate = useNavigate();
  const { q } = useSearch({ strict: false });
  const [typed, setTyped] = useState(q ?? '');
  const [shown, setShown] = useState(q);
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  // Back and forward change the address without a key being pressed.
  if (q !== shown) {
    setShown(q);
    if ((q ?? '') !== typed.trim()) setTyped(q ?? '');
  }
  useHotkeys([['/', () => box.current?.focus()]]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const go = (text: string, wait: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const next = text.trim();
      void navigate({
        to: '/',
        search: (before) => defined({ ...before, q: next || undefined }),
        replace: location.pathname === '/',
      });
    }, wait);
  };

  return (
    <form
      role="search"
      className={classes.search}
      onSubmit={(event) => {
        event.preventDefault();
        go(typed, 0);
      }}
    >
      <TextInput
        ref={box}
        type="search"
        aria-label="Search runs"
        placeholder="Search runs   /"
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={typed}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          if (location.pathname === '/') go(currentTarget.value, WAIT_MS);
        }}
      />
    </form>
  );
}
