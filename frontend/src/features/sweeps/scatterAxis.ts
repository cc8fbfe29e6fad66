/** Axes of the scatter plot: positions from 0 to 1, and ticks. */
import type { Range } from '@/api/series';
import { formatValue } from '@/lib/format';

export type Axis = {
  /** The position of a value; null for one that is not on the axis. */
  at: (value: unknown) => number | null;
  ticks: readonly { at: number; label: string }[];
};

const PADDING = 0.06;
/** From this ratio of the largest to the smallest value on, an axis is logarithmic by default. */
const WIDE = 30;

const areNumbers = (values: readonly unknown[]): values is readonly number[] =>
  values.every((value) => typeof value === 'number');

/** Whether the axis of these values can be logarithmic. */
export const canBeLog = (values: readonly unknown[]): boolean =>
  areNumbers(values) && values.length > 0 && values.every((value) => value > 0);

/** Whether it is logarithmic unless chosen otherwise. */
export const isLogByDefault = (values: readonly unknown[]): boolean =>
  canBeLog(values) && Math.max(...(values as number[])) >= WIDE * Math.min(...(values as number[]));

/** Multiples of 1, 2 or 5 times a power of 10 within a range. */
export function linearTicks([min, max]: Range, n: number): number[] {
  const rough = (max - min) / n;
  if (!(rough > 0)) return [min];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

/** Digits of the ticks in each decade, from many to few. */
const DIGITS = [[1, 2, 5], [1, 3], [1]];

/** Ticks of a logarithmic scale within a range; those of a linear one where it spans less than a decade. */
export function logTicks([min, max]: Range, n: number): number[] {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const decades = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const candidates = DIGITS.map((digits) =>
    decades
      .flatMap((decade) => digits.map((digit) => Number(`${digit}e${decade}`)))
      .filter((value) => value >= min && value <= max),
  );
  const powers = candidates.at(-1) ?? [];
  const every = Math.ceil(powers.length / (n + 1));
  const ticks =
    candidates.find(({ length }) => length <= n + 1) ?? powers.filter((_, at) => at % every === 0);
  return ticks.length > 1 ? ticks : linearTicks([min, max], n);
}

/** An axis over numbers, or over words in the order of their first appearance. */
export function axisOf(values: readonly unknown[], log: boolean, n_ticks: number): Axis {
  if (values.length === 0) return { at: () => null, ticks: [] };
  return areNumbers(values) ? numericAxis(values, log && canBeLog(values), n_ticks) : categoryAxis(values);
}

function numericAxis(values: readonly number[], log: boolean, n_ticks: number): Axis {
  const scale = log ? Math.log10 : (value: number): number => value;
  const extent: Range = [Math.min(...values), Math.max(...values)];
  const [low, high] = [scale(extent[0]), scale(extent[1])];
  // Equal values are in the middle.
  const padding = high > low ? PADDING * (high - low) : log ? 0.5 : Math.abs(low) / 2 || 1;
  const [from, to] = [low - padding, high + padding];
  const at = (value: number): number => (scale(value) - from) / (to - from);
  const range: Range = log ? [10 ** from, 10 ** to] : [from, to];
  const ticks = log ? logTicks(range, n_ticks) : linearTicks(range, n_ticks);
  return {
    at: (value) => (typeof value === 'number' ? at(value) : null),
    ticks: ticks.map((value) => ({ at: at(value), label: formatValue(value) })),
  };
}

function categoryAxis(values: readonly unknown[]): Axis {
  const words = [...new Set(values.map(formatValue))];
  const at = (word: string): number => (words.indexOf(word) + 0.5) / words.length;
  return {
    at: (value) => (words.includes(formatValue(value)) ? at(formatValue(value)) : null),
    ticks: words.map((word) => ({ at: at(word), label: word })),
  };
}
