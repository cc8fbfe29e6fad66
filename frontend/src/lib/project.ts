import { useLocalStorage } from '@mantine/hooks';
import { MAX_PROJECT } from './runBounds';
import { BASE } from './base';

/** Services below different paths of a host share its storage. */
const KEY = `callboard-project${BASE}`;

/** The project of a run for which none is named. */
export const DEFAULT_PROJECT = 'default';

const plain = (stored: unknown): string => (typeof stored === 'string' ? stored : '');

/** The project that was chosen in this browser; empty for all. */
export function readProject(): string {
  try {
    return plain(JSON.parse(localStorage.getItem(KEY) ?? '""'));
  } catch {
    return '';
  }
}

/** The same, and a function that chooses another one. */
export function useProject(): [string, (project: string) => void] {
  const [stored, store] = useLocalStorage({
    key: KEY,
    defaultValue: '',
    getInitialValueInEffect: false,
  });
  return [plain(stored), store];
}

/** Why a typed text is no name of a project; null if it is, or empty. */
export const projectProblem = (typed: string): string | null =>
  typed.length > MAX_PROJECT
    ? `At most ${MAX_PROJECT} characters.`
    : typed.startsWith('.') || /["\\]/.test(typed)
      ? 'A name has no double quotes and backslashes, and begins with no dot.'
      : null;
