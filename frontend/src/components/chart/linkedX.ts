import { createContext } from 'react';

export type Range = readonly [number, number];

/** The part of the horizontal axis that several charts show: zoomed in one, zoomed in all. */
export class LinkedX {
  #range: Range | null = null;
  readonly #listeners = new Set<() => void>();

  /** None: all there is. */
  readonly range = (): Range | null => this.#range;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  set(range: Range | null): void {
    if (String(range) === String(this.#range)) return;
    this.#range = range;
    for (const listener of this.#listeners) listener();
  }
}

/** Without one around it, a chart zooms alone. */
export const LinkedXContext = createContext<LinkedX | null>(null);

/** What plotly's `plotly_relayout` says of the horizontal axis; undefined: nothing. */
export function zoomOf(event: object): Range | null | undefined {
  const said = event as Record<string, unknown>;
  if (said['xaxis.autorange'] === true) return null;
  const [from, to] = [said['xaxis.range[0]'], said['xaxis.range[1]']];
  return typeof from === 'number' && typeof to === 'number' ? [from, to] : undefined;
}
