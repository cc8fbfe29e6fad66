/** Sizes and order of panels of charts in a grid of twelve columns. */
import { joinNames, splitNames } from '@/lib/names';

export type PanelSize = {
  columns: number;
  /** The height of the plot in pixels. */
  height: number;
};

/** The widths to choose from: a quarter, a third, half, two thirds and all of the grid. */
const WIDTHS = [3, 4, 6, 8, 12] as const;
export const GRID_COLUMNS = 12;
const HEIGHTS = { min: 160, max: 800, step: 40 };

/** High enough for a legend of eight lines. */
export const SMALL: PanelSize = { columns: 4, height: 228 };
export const LARGE: PanelSize = { columns: 12, height: 440 };

export const sameSize = (size: PanelSize, other: PanelSize): boolean =>
  size.columns === other.columns && size.height === other.height;

/** The possible size closest to a width in columns and a height in pixels. */
export function nearestSize(columns: number, height: number): PanelSize {
  const away = (width: number): number => Math.abs(width - columns);
  const width = WIDTHS.reduce((best, other) => (away(other) < away(best) ? other : best));
  const clamped = Math.min(Math.max(height, HEIGHTS.min), HEIGHTS.max);
  return { columns: width, height: Math.round(clamped / 4) * 4 };
}

/** The size after a step of the width, of the height, or of both. */
export function steppedSize({ columns, height }: PanelSize, wider: number, higher: number): PanelSize {
  const at = WIDTHS.findIndex((width) => width >= columns) + wider;
  const width = WIDTHS[Math.min(Math.max(at, 0), WIDTHS.length - 1)] ?? columns;
  return nearestSize(width, height + higher * HEIGHTS.step);
}

/** Sizes by the panel's name, such as `loss/value:6x400,speed/updates_per_s:12x228`. */
export function parseSizes(text: string | undefined): ReadonlyMap<string, PanelSize> {
  const sizes = new Map<string, PanelSize>();
  for (const part of text ? splitNames(text) : []) {
    const [, name, columns, height] = /^(.+):(\d{1,2})x(\d{2,4})$/.exec(part) ?? [];
    if (name) sizes.set(name, nearestSize(Number(columns), Number(height)));
  }
  return sizes;
}

export const formatSizes = (sizes: ReadonlyMap<string, PanelSize>): string =>
  joinNames([...sizes].map(([name, { columns, height }]) => `${name}:${columns}x${height}`));

/** The names after one was moved to the place of another; unchanged if either is missing. */
export function movedTo(names: readonly string[], name: string, place: string): readonly string[] {
  if (name === place || !names.includes(name) || !names.includes(place)) return names;
  return names.filter((other) => other !== name).toSpliced(names.indexOf(place), 0, name);
}
