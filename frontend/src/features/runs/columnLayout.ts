import { useLocalStorage } from '@mantine/hooks';
import { useEffect, useMemo, useState } from 'react';
import type { RunField } from '@/api/runFields';
import { joinNames, splitNames } from '@/lib/names';
import { COLUMNS, extraColumn, FIXED, type Column } from './columns';

/** The shown columns in order, without the actions, and the widths that were changed, in pixels. */
export type Layout = { shown: readonly string[]; widths: Readonly<Record<string, number>> };

const KEY = 'callboard-run-table';
/** In pixels. */
export const MIN_WIDTH = 36;
export const MAX_WIDTH = 800;

const ADDRESS_DELAY_MS = 300;

const DEFAULT_SHOWN = COLUMNS.map(({ id }) => id).filter((id) => id !== 'actions');

export const DEFAULT_LAYOUT: Layout = { shown: DEFAULT_SHOWN, widths: {} };

/** A new column is inserted before this one, where it is in sight: after what names the run. */
const BEFORE = 'progress';

/** Shows or hides a column; a setting or metric is shown among the first columns. */
export function toggled(layout: Layout, id: string): Layout {
  const { shown } = layout;
  if (shown.includes(id)) return { ...layout, shown: shown.filter((other) => other !== id) };
  const at = DEFAULT_SHOWN.includes(id) ? -1 : shown.indexOf(BEFORE);
  return { ...layout, shown: at < 0 ? [...shown, id] : [...shown.slice(0, at), id, ...shown.slice(at)] };
}

/** Moves a column to the place of another one. */
export function moved(layout: Layout, id: string, to: number): Layout {
  const from = layout.shown.indexOf(id);
  if (from < 0) return layout;
  const rest = layout.shown.filter((other) => other !== id);
  const at = Math.max(0, Math.min(rest.length, to));
  return { ...layout, shown: [...rest.slice(0, at), id, ...rest.slice(at)] };
}

export const resized = (layout: Layout, id: string, width_px: number): Layout => ({
  ...layout,
  widths: { ...layout.widths, [id]: Math.round(Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, width_px))) },
});

/** The columns to draw, with the width that the user gave them. */
export function columnsOf({ shown, widths }: Layout, fields: readonly RunField[]): Column[] {
  const known = new Map(COLUMNS.map((column) => [column.id, column]));
  const fixed = [...FIXED].filter((id) => id !== 'actions' && !shown.includes(id));
  return [...fixed, ...shown, 'actions'].flatMap((id) => {
    const column = known.get(id) ?? extraColumn(id, fields);
    const width = widths[id];
    return column ? [width === undefined ? column : { ...column, width: `${width}px` }] : [];
  });
}

/** The least width of a column, in pixels. */
export const minWidth_px = ({ width }: Column): number => Number(/\d+/.exec(width)?.[0] ?? 0);

const SELECT_PX = 20;
/** Between columns. */
const GAP_PX = 10;
const PADDING_PX = 24;

/** The least width of a row, with its selection. */
export const leastWidth_px = (columns: readonly Column[]): number =>
  columns.reduce((sum, column) => sum + minWidth_px(column) + GAP_PX, SELECT_PX + PADDING_PX);

const isLayout = (value: unknown): value is Layout =>
  typeof value === 'object' && value !== null && 'widths' in value && Array.isArray((value as Layout).shown);

/** The layout as a parameter of the address: columns in order, with changed widths, such as `name:220px`. */
export const toParameter = ({ shown, widths }: Layout): string =>
  joinNames(shown.map((id) => (widths[id] === undefined ? id : `${id}:${widths[id]}px`)));

/** The layout of an address. */
export function fromParameter(parameter: string): Layout {
  const parts = splitNames(parameter).map((part) => /^(.+):(\d{2,3})px$/u.exec(part) ?? [part, part]);
  const layout: Layout = { shown: [...new Set(parts.map(([, id]) => id ?? ''))], widths: {} };
  return parts.reduce((sized, [, id, px]) => (id && px ? resized(sized, id, Number(px)) : sized), layout);
}

/**
 * The columns of the list of runs: those of the address, which shares them, else those of this browser, which are then
 * written to the address.
 */
export function useColumns(
  fields: readonly RunField[],
  parameter: string | undefined,
  onParameter: (parameter: string | undefined) => void,
) {
  const [stored, store] = useLocalStorage<Layout | null>({
    key: KEY,
    defaultValue: null,
    getInitialValueInEffect: false,
  });
  const own = isLayout(stored) ? toParameter(stored) : DEFAULT_PARAMETER;
  /** A layout that is not in the address yet: browsers limit how often an address changes, and resizing changes it. */
  const [pending, setPending] = useState<string | null>(null);
  if (pending === (parameter ?? DEFAULT_PARAMETER)) setPending(null);
  const current = pending ?? parameter ?? own;
  useEffect(() => {
    if (pending === null) {
      if (parameter === undefined && own !== DEFAULT_PARAMETER) onParameter(own);
      return undefined;
    }
    const timer = setTimeout(
      () => onParameter(pending === DEFAULT_PARAMETER ? undefined : pending),
      ADDRESS_DELAY_MS,
    );
    return () => clearTimeout(timer);
  });
  const layout = useMemo(
    () => (current === DEFAULT_PARAMETER ? DEFAULT_LAYOUT : fromParameter(current)),
    [current],
  );
  const columns = useMemo(() => columnsOf(layout, fields), [layout, fields]);
  const setLayout = (next: Layout | null): void => {
    const chosen = next ?? DEFAULT_LAYOUT;
    store(chosen);
    setPending(toParameter(chosen));
  };
  return { columns, layout, setLayout };
}

/** The default columns as a parameter, which says that they are not those of the browser. */
export const DEFAULT_PARAMETER = toParameter(DEFAULT_LAYOUT);
