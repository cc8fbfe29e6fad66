import { useLocalStorage } from '@mantine/hooks';
import { BASE } from './base';

/** Services below different paths of a host share its storage, and users a browser. */
const START = `callboard-recent-queries${BASE}:`;
const MAX_QUERIES = 5;
const MAX_LETTERS = 500;
const NONE: readonly string[] = [];

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_LETTERS;

/** The stored queries; other versions may have stored something else. */
function read(stored: string | undefined): readonly string[] {
  try {
    const value: unknown = JSON.parse(stored ?? '[]');
    return Array.isArray(value) ? value.filter(isText).slice(0, MAX_QUERIES) : NONE;
  } catch {
    return NONE;
  }
}

/** The latest queries, each once, with another one. */
const withQuery = (queries: readonly string[], query: string): readonly string[] =>
  query === '' || !isText(query)
    ? queries
    : [query, ...queries.filter((other) => other !== query)].slice(0, MAX_QUERIES);

/** A user's latest queries in this browser, and a function that adds one. */
export function useRecentQueries(user: string | undefined): [readonly string[], (query: string) => void] {
  const [queries, setQueries] = useLocalStorage<readonly string[]>({
    key: START + (user ?? ''),
    defaultValue: NONE,
    getInitialValueInEffect: false,
    deserialize: read,
  });
  if (user === undefined) return [NONE, () => undefined];
  return [queries, (query) => setQueries((before) => withQuery(before, query))];
}

/** Removes the queries of every user of this service. */
export function forgetRecentQueries(): void {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(START)) localStorage.removeItem(key);
  } catch {
    // Nothing is stored.
  }
}
