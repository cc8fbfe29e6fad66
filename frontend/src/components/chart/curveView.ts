import { createContext, useContext } from 'react';
import { joinNames, splitNames } from '@/lib/names';
import type { StyleParameters } from '@/api/figures';
import { DEFAULT_SMOOTH, DEFAULT_X, type Range, type Smoothing, type XAxis } from '@/api/series';

/** How all charts of a page are shown. */
export type CurveView = {
  x: XAxis;
  smoothing: Smoothing;
  zoom: Range | null;
  /** The charts with a logarithmic y axis, by name. */
  log: readonly string[];
};

/** The search parameters of a page with charts. */
export type CurveSearch = {
  x?: XAxis;
  smooth?: number;
  /** Without it `points` where there is a weight, else `window`. */
  smoothing?: Exclude<Smoothing['kind'], 'points'>;
  /** Width of the smoothing, in units of x. */
  scale?: number;
  /** Such as `1000..2000`. */
  zoom?: string;
  /** Comma-separated names of charts. */
  log?: string;
};

const ZOOM = /^(-?[\d.e+-]+)\.\.(-?[\d.e+-]+)$/;

export function parseZoom(zoom: string | undefined): Range | null {
  const [, from, to] = (zoom && ZOOM.exec(zoom)?.map(Number)) || [];
  return from !== undefined && to !== undefined && from < to ? [from, to] : null;
}

/** A range as a `zoom` parameter, rounded to a ten-millionth of its width or less: finer than any screen. */
export function formatZoom([from, to]: Range): string {
  const unit = 10 ** (Math.floor(Math.log10(to - from)) - 7);
  // The precision removes what is left of a fraction in binary.
  const [start, end] = [from, to].map((value) => Number((Math.round(value / unit) * unit).toPrecision(15)));
  return `${start}..${end}`;
}

/** The view in a page's address. */
export function viewOf(search: { [K in keyof CurveSearch]?: CurveSearch[K] | undefined }): CurveView {
  return {
    x: search.x ?? DEFAULT_X,
    smoothing: {
      kind: search.smoothing ?? (search.smooth === undefined ? 'window' : 'points'),
      weight: search.smooth ?? DEFAULT_SMOOTH,
      scale: search.scale ?? null,
    },
    zoom: parseZoom(search.zoom),
    log: search.log ? splitNames(search.log) : [],
  };
}

/** The search parameters of a view; undefined where it is the default. */
export function searchOf({ x, smoothing, zoom, log }: CurveView): {
  [K in keyof CurveSearch]-?: CurveSearch[K] | undefined;
} {
  const { kind, weight, scale } = smoothing;
  return {
    x: x === DEFAULT_X ? undefined : x,
    smooth: kind === 'points' ? weight : undefined,
    smoothing: kind === 'ema' ? kind : undefined,
    scale: kind === 'points' || scale === null ? undefined : scale,
    zoom: zoom ? formatZoom(zoom) : undefined,
    log: joinNames(log) || undefined,
  };
}

/** The view after a change. A range and a scale of agent steps mean nothing on another x axis. */
export function changed(view: CurveView, to: Partial<CurveView>): CurveView {
  const next = { ...view, ...to };
  if (next.x === view.x) return next;
  return { ...next, zoom: null, smoothing: { ...next.smoothing, scale: null } };
}

/** A place that all charts of a page show. */
export type Place = {
  x: number;
  /** The chart under the pointer. */
  chart: HTMLElement;
  /** The pointer's distance from the top of that chart, in pixels. */
  top: number;
};

/** What is pointed at, shared by all parts of a page without rendering it. */
export class Pointed<T> {
  #value: T | null = null;
  readonly #listeners = new Set<() => void>();

  readonly get = (): T | null => this.#value;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  set(value: T | null): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }
}

export type CurveViewState = {
  view: CurveView;
  change: (to: Partial<CurveView>) => void;
  /** Styles of the series, where they are not those of their order. */
  styles?: StyleParameters | undefined;
  /** Runs or groups with wider lines, such as the baseline. */
  bold?: ReadonlySet<string> | undefined;
  /** The place under the pointer, shown on all charts. */
  crosshair: Pointed<Place>;
  /** Id of the run or group that is pointed at in a chart or in the list: the lines of others are faded. */
  series: Pointed<string>;
  /** What the steps of the page's runs count, such as "Agent steps". */
  steps: string;
};

export const CurveViewContext = createContext<CurveViewState | null>(null);

/** The view of the page's charts. */
export function useCurveView(): CurveViewState {
  const state = useContext(CurveViewContext);
  if (!state) throw new Error('a chart needs a CurveViewProvider');
  return state;
}

/** The largest x that the service accepts. */
const MAX_X = 1e15;

/** The range moved to between 0, since x is never negative, and `MAX_X`. */
function bounded([from, to]: Range): Range {
  const width = Math.min(to - from, MAX_X);
  const start = Math.min(Math.max(from, 0), MAX_X - width);
  return [start, start + width];
}

/** The x range of a `plotly_relayout` event: null after a reset, undefined without a change of x. */
export function zoomOf(event: object): Range | null | undefined {
  const changes = event as Record<string, unknown>;
  if (changes['xaxis.autorange'] === true) return null;
  const range = changes['xaxis.range'] as unknown[] | undefined;
  const [from, to] = range ?? [changes['xaxis.range[0]'], changes['xaxis.range[1]']];
  return typeof from === 'number' && typeof to === 'number' ? bounded([from, to]) : undefined;
}

/** Shares of the shown range by which a key moves its ends. */
const KEYS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-0.1, -0.1],
  ArrowRight: [0.1, 0.1],
  '+': [0.25, -0.25],
  '=': [0.25, -0.25],
  '-': [-0.5, 0.5],
};

/**
 * The x range after a key in a chart: null for a reset, undefined for other keys; unchanged where the address
 * could not distinguish its ends.
 */
export function rangeAfter(key: string, range: Range): Range | null | undefined {
  if (key === '0') return null;
  const shares = KEYS[key];
  if (!shares) return undefined;
  const [from, to] = range;
  const width = to - from;
  const next = bounded([from + shares[0] * width, to + shares[1] * width]);
  return parseZoom(formatZoom(next)) ? next : range;
}
