import { useCallback, useState } from 'react';

export type Selection = {
  ids: ReadonlySet<string>;
  /** Selects or unselects one; with `through`, everything from the last one touched to it. */
  toggle: (id: string, through?: boolean) => void;
  setAll: (ids: readonly string[]) => void;
  clear: () => void;
};

/** The ids from one to another in the order they are shown, whichever comes first. */
export function between(order: readonly string[], from: string, to: string): string[] {
  const [a, b] = [order.indexOf(from), order.indexOf(to)];
  return a < 0 || b < 0 ? [to] : order.slice(Math.min(a, b), Math.max(a, b) + 1);
}

/** Which rows are selected; `order` is how they are shown. */
export function useSelection(order: readonly string[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState<string | null>(null);

  const toggle = useCallback(
    (id: string, through = false): void => {
      setLast(id);
      setIds((before) => {
        if (through && last !== null) return new Set([...before, ...between(order, last, id)]);
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      });
    },
    [last, order],
  );
  const setAll = useCallback((all: readonly string[]): void => setIds(new Set(all)), []);
  const clear = useCallback((): void => setIds(new Set()), []);
  return { ids, toggle, setAll, clear };
}
