import { useLocalStorage } from '@mantine/hooks';
import { formatSizes, type PanelSize, parseSizes, sameSize, SMALL } from '@/components/chart/panelSize';

/** The user's arrangement of the metric charts. */
export type Arrangement = {
  hidden: readonly string[];
  /** Sizes other than the default, in the form of `formatSizes`. */
  sizes?: string;
  order: readonly string[];
  /** Sections whose charts are folded. */
  collapsed?: readonly string[];
};

const KEY = 'callboard-run-charts';
const DEFAULT: Arrangement = { hidden: [], order: [], collapsed: [] };

/** The arrangement, stored in this browser. */
export function useArrangement(): [Arrangement, (next: Arrangement) => void] {
  const [stored, setStored] = useLocalStorage<Arrangement>({
    key: KEY,
    defaultValue: DEFAULT,
    getInitialValueInEffect: false,
  });
  return [stored, setStored];
}

/** The names sorted by `order`; names that it lacks follow in the given order. */
export function ordered(names: readonly string[], order: readonly string[]): string[] {
  const position = (name: string): number => {
    const index = order.indexOf(name);
    return index < 0 ? order.length : index;
  };
  return names.toSorted((a, b) => position(a) - position(b));
}

/** The order in which `names` are as given; names of other sections keep theirs. */
export const reordered = (order: readonly string[], names: readonly string[]): readonly string[] => [
  ...order.filter((other) => !names.includes(other)),
  ...names,
];

/** The size of a metric's chart. */
export const sizeOf = ({ sizes }: Arrangement, metric: string): PanelSize =>
  parseSizes(sizes).get(metric) ?? SMALL;

/** The arrangement with another size of a metric's chart. */
export function resized(arrangement: Arrangement, metric: string, size: PanelSize): Arrangement {
  const sizes = new Map(parseSizes(arrangement.sizes)).set(metric, size);
  if (sameSize(size, SMALL)) sizes.delete(metric);
  return { ...arrangement, sizes: formatSizes(sizes) };
}

/** The list without `name` if it contains it, otherwise with it. */
export const toggled = (list: readonly string[], name: string): readonly string[] =>
  list.includes(name) ? list.filter((other) => other !== name) : [...list, name];

/** The names that contain each of the typed words. */
export function matching(names: readonly string[], find: string): string[] {
  const words = find.toLowerCase().split(/\s+/);
  return names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
}
