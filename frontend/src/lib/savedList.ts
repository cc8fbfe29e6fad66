import { useEffect, useSyncExternalStore } from 'react';

/** The query of the list of a saved view, whose address does not have it, and what changes it. */
type SavedList = { q: string | undefined; change: (q: string | undefined) => void };

let current: SavedList | null = null;
const listeners = new Set<() => void>();

function set(next: SavedList | null): void {
  current = next;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The list of the saved view that is open; null on other pages. */
export const savedList = (): SavedList | null => current;

export const useSavedList = (): SavedList | null => useSyncExternalStore(subscribe, savedList);

/** Lets the search box of the frame show and change the query of this page's list; null: it has none. */
export function useProvideSavedList(list: SavedList | null): void {
  useEffect(() => set(list), [list]);
  useEffect(() => () => set(null), []);
}
