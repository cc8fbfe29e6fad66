/** The styles of a page's series: numbers that the service draws, given in the order in which they entered. */

import type { StyleParameters } from '@/api/figures';

/** The maximum number of series on a page. */
const N_STYLES = 100;

/** By the id of a run or group. */
export type Styles = ReadonlyMap<string, number>;

const isStyle = (value: number | undefined): value is number =>
  value !== undefined && Number.isInteger(value) && value >= 0 && value < N_STYLES;

/** A style for each series, assigned as the service does: the wanted one, or else the first free one. */
export function distinctStyles(keys: readonly string[], wanted: Styles = new Map()): Styles {
  const given = new Map<string, number>();
  const used = new Set<number>();
  for (const key of keys) {
    const style = wanted.get(key);
    if (given.has(key) || !isStyle(style) || used.has(style)) continue;
    given.set(key, style);
    used.add(style);
  }
  let next = 0;
  const firstFree = (): number => {
    while (used.has(next)) next += 1;
    used.add(next);
    return next;
  };
  return new Map([...new Set(keys)].map((key) => [key, given.get(key) ?? firstFree()]));
}

/** The styles of runs in an address, such as `3,0,1`, in the order of the runs. */
export function parseRunStyles(ids: readonly string[], text: string | undefined): Styles {
  const numbers = text?.split(',') ?? [];
  return distinctStyles(
    ids,
    new Map(
      ids.flatMap((id, at) => (/^\d{1,2}$/.test(numbers[at] ?? '') ? [[id, Number(numbers[at])]] : [])),
    ),
  );
}

/** The styles as text for an address; empty where each run has the first free style. */
export function formatRunStyles(styles: Styles): string {
  const numbers = [...styles.values()];
  return numbers.every((style, at) => style === at) ? '' : numbers.join(',');
}

/** The search parameters of a link to a run's page, which keep the style that the run has here. */
export const searchOfStyle = (style = 0): { style?: string } =>
  style > 0 && style < N_STYLES ? { style: String(style) } : {};

/** The styles that groups want in an address, such as `0f3c5a7e:3`, separated by commas. */
export const parseGroupStyles = (text: string | undefined): Styles =>
  new Map(
    (text?.split(',') ?? []).flatMap((part) => {
      const [, group, style] = /^(\w+):(\d{1,2})$/.exec(part) ?? [];
      return group === undefined ? [] : [[group, Number(style)] as const];
    }),
  );

export const formatGroupStyles = (wanted: Styles): string =>
  [...wanted].map(([group, style]) => `${group}:${style}`).join(',');

/** The styles after `key` gets `style`; the series that had this style gets the former style of `key`. */
export function restyled(styles: Styles, key: string, style: number): Styles {
  const before = styles.get(key);
  return new Map(
    [...styles].map(([other, otherStyle]) => [
      other,
      other === key ? style : otherStyle === style ? (before ?? otherStyle) : otherStyle,
    ]),
  );
}

/** The parameters of a page's figures; those that are the default are left out. */
export function styleParameters(runs: Styles, groups: Styles = new Map()): StyleParameters {
  return {
    ...(formatRunStyles(runs) && { style: [...runs.values()] }),
    ...(groups.size > 0 && { group_style: formatGroupStyles(groups).split(',') }),
  };
}
