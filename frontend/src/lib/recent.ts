import { useLocalStorage } from '@mantine/hooks';
import { BASE } from './base';

/** What is kept: queries for runs, and where somebody went by the palette. */
const KINDS = ['queries', 'places'] as const;
type Kind = (typeof KINDS)[number];

/** Services below different paths of a host share its storage, and users a browser. */
const startOf = (kind: Kind): string => `callboard-recent-${kind}${BASE}:`;
const MAX_ENTRIES = 5;
const MAX_LETTERS = 500;
const NONE: readonly string[] = [];

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_LETTERS;

/** The stored entries; other versions may have stored something else. */
function read(stored: string | undefined): readonly string[] {
  try {
    const value: unknown = JSON.parse(stored ?? '[]');
    return Array.isArray(value) ? value.filter(isText).slice(0, MAX_ENTRIES) : NONE;
  } catch {
    return NONE;
  }
}

/** The latest entries, each once, with another one. */
const withEntry = (entries: readonly string[], entry: string): readonly string[] =>
  entry === '' || !isText(entry)
    ? entries
    : [entry, ...entries.filter((other) => other !== entry)].slice(0, MAX_ENTRIES);

/** A user's latest entries of a kind in this browser, and a function that adds one. */
export function useRecent(
  kind: Kind,
  user: string | undefined,
): [readonly string[], (entry: string) => void] {
  const [entries, setEntries] = useLocalStorage<readonly string[]>({
    key: startOf(kind) + (user ?? ''),
    defaultValue: NONE,
    getInitialValueInEffect: false,
    deserialize: read,
  });
  if (user === undefined) return [NONE, () => undefined];
  return [entries, (entry) => setEntries((before) => withEntry(before, entry))];
}

/** Removes the entries of every user of this service. */
export function forgetRecent(): void {
  try {
    for (const key of Object.keys(localStorage))
      if (KINDS.some((kind) => key.startsWith(startOf(kind)))) localStorage.removeItem(key);
  } catch {
    // Nothing is stored.
  }
}
