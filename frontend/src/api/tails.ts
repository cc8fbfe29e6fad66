/** Figures of the service: typed arrays from JSON, and what is new of a figure that grows. */
import type { Data, Layout } from 'plotly.js';

/** The parts of a label: the name in the view, such as "lr 0.001", and a detail, such as the source. */
type Label = { name?: string; detail?: string };

/** Facts about a trace. */
export type Meta = {
  kind?: 'line' | 'partial' | 'range' | 'points' | 'seed' | 'not_finite' | 'evaluations' | 'marks' | 'legend';
  run?: string;
  group?: string;
  source?: string;
  label?: Label;
  /** Of each point: lower bound of the range, or the window's mean minus its standard deviation. */
  low?: Float64Array;
  /** Of each point: upper bound of the range, or the window's mean plus its standard deviation. */
  high?: Float64Array;
  /** Number of values of each point. */
  n?: Float64Array;
  /** Bucket of each point. */
  bucket?: Float64Array;
  /** Of what is not finite: the number of such values at each point, by kind. */
  nan?: Float64Array;
  inf?: Float64Array;
  neg_inf?: Float64Array;
};

/** A trace of a figure over training; a missing number is NaN. */
export type Trace = {
  uid?: string;
  name?: string;
  x?: Float64Array | readonly unknown[];
  y?: Float64Array | readonly unknown[];
  text?: readonly string[] | string;
  mode?: string;
  yaxis?: string;
  visible?: unknown;
  hoverinfo?: string;
  showlegend?: boolean;
  stackgroup?: string;
  line?: { color?: string };
  marker?: { symbol?: string; color?: string };
  meta?: Meta;
};

export type Figure = {
  data: Data[];
  layout: Partial<Layout>;
  /** What the horizontal axis counts, such as `iterations`. */
  x?: string | null | undefined;
  /** The runs' revisions of this data. */
  revisions: readonly number[];
  n_total: number;
  n_shown: number;
  /** What is drawn around the lines, or instead of the centres of groups. */
  bands: readonly string[];
  /** The width of the window of which the lines are means: one, or one for each run; empty without any. */
  scales: readonly number[];
};

/** The service's answer: a figure, or what a client lacks of it. */
export type Answer = Omit<Figure, 'layout'> & { layout?: Partial<Layout> };

const TYPES = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  f8: Float64Array,
} as const;

type Binary = { dtype: keyof typeof TYPES; bdata: string };

const isBinary = (value: unknown): value is Binary =>
  typeof value === 'object' && value !== null && 'bdata' in value;

function fromBase64({ dtype, bdata }: Binary): Float64Array {
  const bytes = Uint8Array.from(atob(bdata), (character) => character.charCodeAt(0));
  return Float64Array.from(new TYPES[dtype](bytes.buffer));
}

const isNumbers = (value: unknown): value is readonly (number | null)[] =>
  Array.isArray(value) && value.every((item) => item === null || typeof item === 'number');

/** Numbers of JSON as an array; anything else as it is. */
function decoded(value: unknown): unknown {
  if (isBinary(value)) return fromBase64(value);
  return isNumbers(value) ? Float64Array.from(value, (item) => item ?? NaN) : value;
}

const DETAILS = ['low', 'high', 'n', 'bucket', 'nan', 'inf', 'neg_inf'] as const;
const NUMBERS = ['x', 'y', 'customdata'] as const;

/** A trace as the service sends it: with `type` if it is whole, with `from` if it is the tail from that bucket. */
type Received = Trace & { from?: number; type?: string; customdata?: unknown };

/** A trace with its numbers decoded; for one that grows, meta.bucket is filled in. */
function decodedTrace(trace: Received): Received {
  const read: Received = { ...trace };
  for (const name of NUMBERS) if (name in trace) Object.assign(read, { [name]: decoded(trace[name]) });
  if (trace.meta === undefined) return read;
  const meta: Meta = { ...trace.meta };
  for (const name of DETAILS) if (name in meta) meta[name] = decoded(meta[name]) as Float64Array;
  if (trace.uid !== undefined && read.x)
    meta.bucket ??= Float64Array.from({ length: read.x.length }, (_: unknown, at) => (trace.from ?? 0) + at);
  return { ...read, meta };
}

/** A trace's points before bucket `from`, followed by its new ones. */
function extended(before: Received, { from = 0, meta = {}, ...tail }: Received): Received {
  const buckets = before.meta?.bucket ?? new Float64Array();
  const join = (old: unknown, fresh: unknown): Float64Array => {
    const kept = old instanceof Float64Array ? old.filter((_, at) => (buckets[at] ?? 0) < from) : [];
    const added = fresh instanceof Float64Array ? fresh : [];
    const joined = new Float64Array(kept.length + added.length);
    joined.set(kept);
    joined.set(added, kept.length);
    return joined;
  };
  const next: Received = { ...before, ...tail, meta: { ...before.meta } };
  for (const name of NUMBERS) {
    if (name in before || name in tail) Object.assign(next, { [name]: join(before[name], tail[name]) });
  }
  for (const name of DETAILS) {
    if (before.meta?.[name] ?? meta[name])
      next.meta = { ...next.meta, [name]: join(before.meta?.[name], meta[name]) };
  }
  return next;
}

/** A whole figure of the service. */
export function wholeFigure({ layout = {}, ...answer }: Answer): Figure {
  return { ...answer, layout, data: answer.data.map((trace) => decodedTrace(trace as Received) as Data) };
}

/** A figure with what is new of it; null if it lacks a growing trace of the answer, and has to be fetched whole. */
export function withTails(figure: Figure, answer: Answer): Figure | null {
  const all = figure.data as readonly Received[];
  const growing = new Map(all.flatMap((trace) => (trace.uid === undefined ? [] : [[trace.uid, trace]])));
  const others: Received[] = [];
  for (const fresh of answer.data as readonly Received[]) {
    const trace = decodedTrace(fresh);
    if (trace.uid === undefined) {
      others.push(trace);
      continue;
    }
    const before = growing.get(trace.uid);
    if (!before) return null;
    const isWhole = trace.type !== undefined;
    growing.set(
      trace.uid,
      isWhole ? trace : trace.from === undefined ? { ...before, ...trace } : extended(before, trace),
    );
  }
  const rest = answer.layout ? others : all.filter(({ uid }) => uid === undefined);
  return {
    ...answer,
    layout: answer.layout ?? figure.layout,
    x: answer.layout ? answer.x : figure.x,
    data: [...growing.values(), ...rest] as Data[],
  };
}
