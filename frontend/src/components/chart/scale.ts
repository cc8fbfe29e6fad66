import type { Annotations, Data, Layout, LayoutAxis } from 'plotly.js';
import type { Range } from '@/api/series';
import type { Trace } from '@/api/tails';
import { formatNumber, formatTick, plural } from '@/lib/format';

const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => at + 1);

const PREFIXES: readonly (readonly [string, number])[] = [
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
  ['T', 1e12],
];

let texts: Readonly<Record<string, string>> | null = null;

/**
 * Maps the chart library's text of a tick to the text that tables use: `0.5M`, on an axis that ends at 4M, to `500k`.
 * Texts with more digits, such as 12.25k, stay as they are.
 */
export function tickTexts(): Readonly<Record<string, string>> {
  // With the first chart: these thousands of texts would delay the first paint of every page.
  texts ??= Object.fromEntries<string>(
    PREFIXES.flatMap(([prefix, unit]) => {
      // Below 1M and below 10k tables write another text. Above, they write the library's, but `2.0M` for its `2M`.
      const parts = upTo(999).map((at) => (prefix === 'k' ? at / 100 : at / 1000));
      return [...parts, ...upTo(99)].flatMap((at) => {
        const text = formatTick(at * unit);
        return ['', '\u2212'].map((sign) => [`${sign}${at}${prefix}`, sign + text]);
      });
    }),
  );
  return texts;
}

/** A layout whose axes write numbers as tables do. */
export const withTickTexts = (layout: Partial<Layout>): Partial<Layout> =>
  Object.fromEntries(
    Object.entries(layout).map(([name, part]: [string, unknown]) => [
      name,
      /^[xy]axis\d*$/.test(name) ? { ...(part as object), labelalias: tickTexts() } : part,
    ]),
  );

/** A layout on a log scale. */
export function onLogScale(layout: Partial<Layout>): Partial<Layout> {
  const { autorangeoptions, range, ...yaxis } = layout.yaxis ?? {};
  return {
    ...layout,
    // Ranges of a linear scale may not exist on a log scale.
    yaxis: { ...yaxis, type: 'log' as const },
    annotations: (layout.annotations ?? []).flatMap(onLog),
    shapes: (layout.shapes ?? []).filter(({ yref, y0 }) => yref !== 'y' || Number(y0) > 0),
  };
}

/** An annotation on a log scale, which plotly positions by exponent; none for a value ≤ 0. */
function onLog(annotation: Partial<Annotations>): Partial<Annotations>[] {
  if (annotation.yref !== 'y') return [annotation];
  const y = Number(annotation.y);
  return y > 0 ? [{ ...annotation, y: Math.log10(y) }] : [];
}

/** Values within this relative tolerance are equal but for rounding. */
const TOLERANCE = 1e-9;

/** Smaller values lose digits when they are halved, so that no range can be drawn around them. */
const LEAST_NORMAL = 2 ** -1022;

/** The y range for constant values, whose rounding errors would otherwise fill the plot; undefined for others. */
export function flatRange(traces: readonly Data[]): [number, number] | undefined {
  let [min, max] = [Infinity, -Infinity];
  for (const trace of traces) {
    const { y: values, yaxis = 'y' } = trace as { y?: Iterable<unknown>; yaxis?: string };
    if (yaxis !== 'y') continue;
    for (const y of values ?? []) {
      if (!Number.isFinite(y)) continue;
      min = Math.min(min, Number(y));
      max = Math.max(max, Number(y));
    }
  }
  const size = Math.max(Math.abs(min), Math.abs(max));
  if (size < LEAST_NORMAL || !Number.isFinite(size) || max - min > TOLERANCE * size) return undefined;
  return [max - size / 2, max + size / 2];
}

const PADDING = 0.05;

/** Share of the values at each end that may be outliers: a spike is a twentieth of a run wide in a window's mean. */
const OUTER = 0.1;
/** By how much the values' range must exceed that of the inner ones, and how far beyond these a value may be. */
const [FLATTENED, REACH] = [100, 10];

export type Outside = {
  /** The range of the values that are shown. */
  range: Range;
  /** How many values of lines lie above and below it, and the furthest. */
  above: { n: number; furthest: number };
  below: { n: number; furthest: number };
};

/**
 * The range of y without a few values so far from the others that these would be a flat line; undefined without such.
 * A line whose last value is that far is no outlier: it may go on.
 */
export function outside(traces: readonly Data[], zoom: Range | null): Outside | undefined {
  const values: number[] = [];
  const lines: number[][] = [];
  for (const trace of traces) {
    const { x, y, yaxis = 'y', stackgroup, meta } = trace as Trace;
    if (!y || yaxis !== 'y') continue;
    if (stackgroup) return undefined;
    const own: number[] = [];
    for (const [index, value] of y.entries()) {
      const at = x?.[index];
      if (typeof value !== 'number' || !Number.isFinite(value)) continue;
      if (!zoom || (typeof at === 'number' && at >= zoom[0] && at <= zoom[1])) own.push(value);
    }
    values.push(...own);
    if (meta?.kind === 'line') lines.push(own);
  }
  const sorted = Float64Array.from(values).sort();
  const quantile = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? NaN;
  const [low, high] = [quantile(OUTER), quantile(1 - OUTER)];
  const width = high - low;
  if (!(width > 0) || !(quantile(1) - quantile(0) > FLATTENED * width)) return undefined;
  const isFar = (value: number): boolean => value < low - REACH * width || value > high + REACH * width;
  if (lines.some((line) => isFar(line.at(-1) ?? low))) return undefined;
  const near = sorted.filter((value) => !isFar(value));
  const [from, to] = [near[0] ?? low, near.at(-1) ?? high];
  const far = lines.flat().filter(isFar);
  const [above, below] = [far.filter((value) => value > to), far.filter((value) => value < from)];
  return {
    range: [from - PADDING * (to - from), to + PADDING * (to - from)],
    above: { n: above.length, furthest: above.reduce((most, value) => Math.max(most, value), to) },
    below: { n: below.length, furthest: below.reduce((least, value) => Math.min(least, value), from) },
  };
}

/** Marks at the ends of a range of y that values lie beyond it; none on a log scale, which has room for them. */
export function outsideMarks(
  traces: readonly Data[],
  zoom: Range | null,
  log: boolean,
): Partial<Annotations>[] {
  const beyond = log || flatRange(traces) ? undefined : outside(traces, zoom);
  if (!beyond) return [];
  const { range, above, below } = beyond;
  const ends = [
    { ...above, y: range[1], yanchor: 'top' as const, text: '▲' },
    { ...below, y: range[0], yanchor: 'bottom' as const, text: '▼' },
  ];
  return ends.flatMap(({ n, furthest, y, yanchor, text }) =>
    n === 0
      ? []
      : {
          name: 'outside',
          // Of the data: with all values in view, the mark stays where the range ended.
          ...{ x: 0.5, xref: 'paper' as const, xanchor: 'center' as const, y, yref: 'y' as const, yanchor },
          text: `${text} ${plural(n, 'value')} to ${formatNumber(furthest)} outside`,
          showarrow: false,
        },
  );
}

/** The lowest and highest y of the traces on the main axis, in a range of x. */
function extentOf(traces: readonly Data[], zoom: Range | null, log: boolean): Range | undefined {
  let [min, max] = [Infinity, -Infinity];
  for (const trace of traces) {
    const { x, y, yaxis = 'y' } = trace as Trace;
    if (!y || yaxis !== 'y') continue;
    for (const [index, value] of y.entries()) {
      if (typeof value !== 'number' || Number.isNaN(value) || (log && value <= 0)) continue;
      const at = x?.[index];
      if (zoom && (typeof at !== 'number' || at < zoom[0] || at > zoom[1])) continue;
      min = Math.min(min, value);
      max = Math.max(max, value);
    }
  }
  return max >= min && Number.isFinite(max - min) ? [min, max] : undefined;
}

/** Ticks of a log scale: decades, 1, 2 and 5 of each where these are few, or equal steps within a decade. */
export function logTicks([min, max]: Range): number[] {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const step = Math.max(1, Math.ceil((last - first) / 8));
  const decades = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, at) => first + at * step);
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const ticks = decades
    .flatMap((decade) => factors.map((factor) => Number(`${factor}e${decade}`)))
    .filter((tick) => tick > 0 && Number.isFinite(tick));
  const isEnough = ticks.filter((tick) => tick >= min && tick <= max).length >= 2;
  return isEnough || max - min < LEAST_NORMAL ? ticks : equalSteps([min, max]);
}

/** Multiples above 0 of a round step, of which at least three are in the range. */
function equalSteps([min, max]: Range): number[] {
  const most = ((max - min) / 3) * (1 + TOLERANCE);
  const exponent = Math.floor(Math.log10(most));
  const step = Math.max(
    ...[0.5, 1, 2, 5].map((factor) => Number(`${factor}e${exponent}`)).filter((size) => size <= most),
  );
  const [first, last] = [Math.floor(min / step), Math.ceil(max / step)];
  return Array.from({ length: last - first + 1 }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  ).filter((tick) => tick > 0 && Number.isFinite(tick));
}

/** Whether ticks need exponents, as `5e-3` in place of `5m`. */
const isTiny = ([min, max]: Range): boolean => Math.max(Math.abs(min), Math.abs(max)) < 1e-2;

/** The y axis for the traces in view. */
export function yAxis(traces: readonly Data[], zoom: Range | null, log: boolean): Partial<LayoutAxis> {
  const extent = extentOf(traces, zoom, log);
  if (!extent) return {};
  const flat = flatRange(traces);
  if (log) {
    const shown = flat && flat[0] > 0 ? flat : extent;
    const tickvals = logTicks(shown);
    const ticks = {
      tickmode: 'array' as const,
      tickvals,
      ticktext: tickvals.map(formatTick),
    };
    if (shown === flat) return { ...ticks, range: flat.map(Math.log10), autorange: false };
    if (!zoom) return ticks;
    const [low, high] = [Math.log10(extent[0]), Math.log10(extent[1])];
    const padding = Math.max(PADDING * (high - low), 0.01);
    return { ...ticks, range: [low - padding, high + padding], autorange: false };
  }
  const numbers = isTiny(extent) ? { exponentformat: 'e' as const } : {};
  if (flat) return { ...numbers, range: flat, autorange: false };
  const robust = outside(traces, zoom);
  if (robust) return { ...numbers, range: [...robust.range], autorange: false };
  if (!zoom || traces.some((trace) => (trace as { stackgroup?: string }).stackgroup)) return numbers;
  const padding = PADDING * (extent[1] - extent[0]) || 1;
  return { ...numbers, range: [extent[0] - padding, extent[1] + padding], autorange: false };
}
