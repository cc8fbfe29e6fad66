import { useLocalStorage } from '@mantine/hooks';

/** How someone arranged the charts of metrics: which are hidden or large, and which come first. */
export type Arrangement = {
  hidden: readonly string[];
  large: readonly string[];
  order: readonly string[];
};

const KEY = 'callboard-run-charts';
const AS_IT_COMES: Arrangement = { hidden: [], large: [], order: [] };

/** The arrangement, remembered in this browser. */
export function useArrangement(): [Arrangement, (next: Arrangement) => void] {
  const [kept, setKept] = useLocalStorage<Arrangement>({
    key: KEY,
    defaultValue: AS_IT_COMES,
    getInitialValueInEffect: false,
  });
  return [kept, setKept];
}

/** The names in their order; those no one moved come after those that were, as they are given. */
export function ordered(names: readonly string[], order: readonly string[]): string[] {
  const place = (name: string): number => {
    const at = order.indexOf(name);
    return at < 0 ? order.length : at;
  };
  return names.toSorted((a, b) => place(a) - place(b));
}

/** The order after `name` has changed places with the one before (-1) or after it (1) in `names`. */
export function moved(
  order: readonly string[],
  names: readonly string[],
  name: string,
  by: -1 | 1,
): readonly string[] {
  const at = names.indexOf(name);
  const other = names[at + by];
  if (at < 0 || other === undefined) return order;
  const next = [...names];
  next[at] = other;
  next[at + by] = name;
  return [...order.filter((each) => !names.includes(each)), ...next];
}

export const toggled = (list: readonly string[], name: string): readonly string[] =>
  list.includes(name) ? list.filter((each) => each !== name) : [...list, name];
