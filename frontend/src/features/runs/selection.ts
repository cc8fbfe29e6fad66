import { useMemo, useState } from 'react';

export type Selection = {
  ids: ReadonlySet<string>;
  /** How many of them the list does not show, because a filter leaves them out or they are further down. */
  notShown: number;
  /** Selects or unselects one; with `through`, everything from the last one touched to it. */
  toggle: (id: string, through?: boolean) => void;
  /** Selects everything from one to the other. */
  extend: (from: string, to: string) => void;
  setAll: (ids: readonly string[]) => void;
};

/** The ids from one to another in the order they are shown, whichever comes first. */
export function between(order: readonly string[], from: string, to: string): string[] {
  const [a, b] = [order.indexOf(from), order.indexOf(to)];
  return a < 0 || b < 0 ? [to] : order.slice(Math.min(a, b), Math.max(a, b) + 1);
}

/**
 * Which rows are selected, kept by whoever gives them, such as an address.
 *
 * @param order how the rows are shown.
 * @param selected ids with commas between.
 * @param onSelected is told them anew.
 */
export function useSelection(
  order: readonly string[],
  selected: string | undefined,
  onSelected: (selected: string | undefined) => void,
): Selection {
  const [last, setLast] = useState<string | null>(null);
  const ids = useMemo(() => new Set(selected?.split(',').filter(Boolean)), [selected]);
  const notShown = useMemo(() => {
    const shown = new Set(order);
    return [...ids].filter((id) => !shown.has(id)).length;
  }, [order, ids]);
  const setAll = (all: Iterable<string>): void => onSelected([...new Set(all)].join(',') || undefined);
  const extend = (from: string, to: string): void => {
    setLast(to);
    setAll([...ids, ...between(order, from, to)]);
  };
  const toggle = (id: string, through = false): void => {
    if (through && last !== null) {
      extend(last, id);
      return;
    }
    setLast(id);
    setAll(ids.has(id) ? [...ids].filter((each) => each !== id) : [...ids, id]);
  };
  return { ids, notShown, toggle, extend, setAll };
}
