import { useMemo, useState } from 'react';

export type Selection = {
  /** The rows that are selected one by one; none while everything is selected. */
  ids: ReadonlySet<string>;
  /** Whether everything that matches is selected, except `except`. */
  everything: boolean;
  except: ReadonlySet<string>;
  has: (id: string) => boolean;
  any: boolean;
  /** How many of the selected rows are not in the list: excluded by a filter, or not loaded yet. */
  notShown: number;
  /** Selects or deselects a row; with `range`, selects all rows from the last toggled one to it. */
  toggle: (id: string, range?: boolean) => void;
  /** Selects two rows and all between them. */
  extend: (from: string, to: string) => void;
  setAll: (ids: readonly string[]) => void;
  /** Selects everything that matches, loaded or not. */
  selectEverything: () => void;
};

/** Stands for everything that matches; ids after it are exceptions. */
const EVERYTHING = '*';

/** The ids between two rows in display order, in either direction; `to` alone if one of them is not shown. */
export function between(order: readonly string[], from: string, to: string): string[] {
  const [a, b] = [order.indexOf(from), order.indexOf(to)];
  return a < 0 || b < 0 ? [to] : order.slice(Math.min(a, b), Math.max(a, b) + 1);
}

/**
 * The selected rows, controlled by the caller, such as by a search parameter.
 *
 * @param order all rows in display order.
 * @param selected comma-separated ids; after `*`, the exceptions from everything that matches.
 * @param onSelected receives the changed ids.
 */
export function useSelection(
  order: readonly string[],
  selected: string | undefined,
  onSelected: (selected: string | undefined) => void,
): Selection {
  const [last, setLast] = useState<string | null>(null);
  const [everything, listed] = useMemo(() => {
    const parts = selected?.split(',').filter(Boolean) ?? [];
    return [parts[0] === EVERYTHING, new Set(parts.filter((part) => part !== EVERYTHING))] as const;
  }, [selected]);
  const notShown = useMemo(() => {
    if (everything) return 0;
    const shown = new Set(order);
    return [...listed].filter((id) => !shown.has(id)).length;
  }, [order, listed, everything]);
  const store = (ids: Iterable<string>): void =>
    onSelected([...(everything ? [EVERYTHING] : []), ...new Set(ids)].join(',') || undefined);
  const setAll = (ids: readonly string[]): void => onSelected([...new Set(ids)].join(',') || undefined);
  const extend = (from: string, to: string): void => {
    setLast(to);
    const range = between(order, from, to);
    store(everything ? [...listed].filter((id) => !range.includes(id)) : [...listed, ...range]);
  };
  const toggle = (id: string, range = false): void => {
    if (range && last !== null) {
      extend(last, id);
      return;
    }
    setLast(id);
    store(listed.has(id) ? [...listed].filter((other) => other !== id) : [...listed, id]);
  };
  return {
    ids: everything ? NONE : listed,
    everything,
    except: everything ? listed : NONE,
    has: (id) => listed.has(id) !== everything,
    any: everything || listed.size > 0,
    notShown,
    toggle,
    extend,
    setAll,
    selectEverything: () => onSelected(EVERYTHING),
  };
}

const NONE: ReadonlySet<string> = new Set();
