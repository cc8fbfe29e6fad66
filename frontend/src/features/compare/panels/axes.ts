/** The axes of parallel coordinates: where each value stands, from 0 at the foot to 1 at the top. */
import { formatNumber, formatValue } from '@/lib/format';
import { compareNames } from '@/lib/names';

export type Range = readonly [number, number];

export type Axis = {
  /** Path of a setting, or the score. */
  id: string;
  title: string;
  /** The place of the value of each row; undefined for a row without one. */
  places: readonly (number | undefined)[];
  ticks: readonly { at: number; text: string }[];
  /** What stands at a place. */
  textAt: (place: number) => string;
};

/** From this ratio of the largest to the smallest on, an axis of positive numbers is logarithmic. */
const WIDE = 20;
const MAX_TICKS = 8;

/** The axis of some values, one of each row. */
export function axisOf(id: string, title: string, values: readonly unknown[]): Axis {
  const present = values.filter((value) => value !== undefined && value !== null);
  const numbers = present.filter((value) => typeof value === 'number' && Number.isFinite(value)) as number[];
  if (numbers.length > 0 && numbers.length === present.length) return numeric(id, title, values, numbers);
  const texts = [...new Set(present.map(formatValue))].toSorted(compareNames);
  const at = (index: number): number => (texts.length < 2 ? 0.5 : index / (texts.length - 1));
  return {
    id,
    title,
    places: values.map((value) =>
      value === undefined || value === null ? undefined : at(texts.indexOf(formatValue(value))),
    ),
    ticks: thinned(texts.map((text, index) => ({ at: at(index), text }))),
    textAt: (place) => texts[Math.round(place * (texts.length - 1))] ?? '',
  };
}

function numeric(id: string, title: string, values: readonly unknown[], numbers: readonly number[]): Axis {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const isLog = low > 0 && high / low >= WIDE;
  const scaled = (value: number): number => (isLog ? Math.log(value) : value);
  const [from, to] = [scaled(low), scaled(high)];
  const placeOf = (value: number): number => (to > from ? (scaled(value) - from) / (to - from) : 0.5);
  const valueAt = (place: number): number => {
    const at = from + place * (to - from);
    return isLog ? Math.exp(at) : at;
  };
  const distinct = [...new Set(numbers)].toSorted((a, b) => a - b);
  const marked = distinct.length <= MAX_TICKS ? distinct : [0, 0.25, 0.5, 0.75, 1].map(valueAt);
  return {
    id,
    title,
    places: values.map((value) =>
      typeof value === 'number' && Number.isFinite(value) ? placeOf(value) : undefined,
    ),
    ticks: marked.map((value) => ({ at: placeOf(value), text: formatNumber(value) })),
    textAt: (place) => formatNumber(Number(valueAt(place).toPrecision(4))),
  };
}

/** As many as fit, with the first and the last. */
function thinned<T>(ticks: readonly T[]): readonly T[] {
  const step = Math.ceil(ticks.length / MAX_TICKS);
  return ticks.filter((_, at) => at % step === 0 || at === ticks.length - 1);
}

/** Ranges of axes by id, outside which rows are not drawn. */
export type Brushes = ReadonlyMap<string, Range>;

/** A place may be rounded differently on the way to the page. */
const EPSILON = 1e-9;

/** The rows, by their place, that are within all ranges. */
export const within = (axes: readonly Axis[], brushes: Brushes, n: number): number[] =>
  Array.from({ length: n }, (_, row) => row).filter((row) =>
    axes.every(({ id, places }) => {
      const range = brushes.get(id);
      const place = places[row];
      if (range === undefined) return true;
      return place !== undefined && place >= range[0] - EPSILON && place <= range[1] + EPSILON;
    }),
  );
