/** Formats numbers, times and sizes as text, in the same way on every page; parses typed numbers. */

const NBSP = '\u00a0';
const MINUS = '\u2212';
export const DASH = '\u2013';

const SI: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

const signed = (text: string): string => text.replace('-', MINUS);

// Created once each: creating a formatter takes twenty times as long as formatting a number with it.
const formatter = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat('en', options);
const withDigits = (digits: number) =>
  formatter({
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: 'negative', // no sign where a negative number is rounded to 0
  });
const FIXED = [withDigits(0), withDigits(1), withDigits(2)] as const;
const FOUR_SIGNIFICANT = formatter({ maximumSignificantDigits: 4 });
const SIX_SIGNIFICANT = formatter({ maximumSignificantDigits: 6 });
const TICK = formatter({ maximumFractionDigits: 5 });
const TICK_WITH_POINT = formatter({ minimumFractionDigits: 1, maximumFractionDigits: 5 });

const grouped = (value: number, digits: 0 | 1 | 2): string => signed(FIXED[digits].format(value));

/** A count: an integer below 10,000, an SI prefix above, such as 12.3k, 100k and 4.0M. */
export function formatCount(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return DASH;
  // What the number is after rounding decides on its text.
  const size = Math.round(Math.abs(value));
  if (size < 1e4) return grouped(value, 0);
  if (size >= 999.5e12) return formatNumber(value);
  const [scale, prefix] = SI.find(([unit]) => size >= unit * 0.9995) ?? [1, ''];
  const scaled = value / scale;
  return `${grouped(scaled, Math.abs(scaled) < 99.95 ? 1 : 0)}${prefix}`;
}

/** A number on an axis, of at most six digits: as in tables, but not rounded to what fits there. */
export function formatTick(value: number): string {
  if (!Number.isFinite(value)) return formatNumber(value);
  const rounded = Number(value.toPrecision(6));
  const size = Math.abs(rounded);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return formatNumber(rounded);
  if (size < 1e4) return signed(SIX_SIGNIFICANT.format(rounded || 0));
  const [scale, prefix] = SI.find(([unit]) => size >= unit) ?? [1, ''];
  const digits = (size < 100 * scale ? TICK_WITH_POINT : TICK).format(rounded / scale);
  return `${signed(digits)}${prefix}`;
}

/** All digits of a count, with thousands separators. */
export function formatInteger(value: number | null | undefined): string {
  return value == null ? DASH : grouped(value, 0);
}

/** A score with two decimals below 10, one below 1,000 and none above. */
export function formatScore(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  return grouped(value, size >= 999.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** Any measured value with four significant figures, such as 0.0224 and 6.9e−4. */
export function formatNumber(value: number | null | undefined): string {
  if (value == null) return DASH;
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${MINUS}∞`;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) {
    return Number(value.toPrecision(4)).toExponential().replace('+', '').replaceAll('-', MINUS);
  }
  if (Number.isInteger(value)) return grouped(value, 0);
  return signed((size >= 1000 ? SIX_SIGNIFICANT : FOUR_SIGNIFICANT).format(value));
}

/** A number per second: a count from 10, with the digits of a measured value below. */
export const formatRate = (perS: number | null | undefined): string =>
  perS != null && Math.abs(perS) < 10 ? formatNumber(perS) : formatCount(perS);

/** A config value as it would be typed. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') {
    return signed(Math.abs(value) >= 1e4 ? value.toLocaleString('en') : String(value));
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A duration in at most two units. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return DASH;
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(s < 1 && s > 0 ? 1 : 0)}${NBSP}s`;
  if (s < 60) return `${Math.floor(s)}${NBSP}s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes}${NBSP}min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}${NBSP}h${NBSP}${String(minutes % 60).padStart(2, '0')}${NBSP}min`;
  return `${Math.floor(hours / 24)}${NBSP}d${NBSP}${hours % 24}${NBSP}h`;
}

/** A duration in one unit, for narrow columns: 10 min, 3.9 h. */
export function formatCoarseDuration(seconds: number): string {
  if (seconds < 3600) return formatDuration(seconds);
  const [size, unit] = seconds < 86_400 ? [3600, 'h'] : [86_400, 'd'];
  const tenths = Math.floor((seconds / size) * 10) / 10;
  return `${tenths < 10 ? tenths.toFixed(1) : Math.floor(tenths)}${NBSP}${unit}`;
}

/** A duration rounded to one unit. */
function inOneUnit(seconds: number): string {
  const [size, unit] = seconds < 3570 ? [60, 'min'] : seconds < 129_600 ? [3600, 'h'] : [86_400, 'd'];
  return `${Math.max(1, Math.round(seconds / size))}${NBSP}${unit}`;
}

/** Two estimates that differ by more than this factor are shown both. */
const ALIKE = 2;

/** An estimate of the time left, in one unit: about 4 h; or two that differ much: 7 min to 1 h. */
export function formatTimeLeft(seconds: number | null | undefined, other = seconds): string {
  if (seconds == null || !Number.isFinite(seconds)) return DASH;
  const ends = [seconds, other ?? seconds].toSorted((a, b) => a - b);
  const [least = seconds, most = seconds] = ends;
  if (most < 60) return `under${NBSP}1${NBSP}min`;
  return most > ALIKE * least && Number.isFinite(most)
    ? `${inOneUnit(least)} to${NBSP}${inOneUnit(most)}`
    : `about${NBSP}${inOneUnit(seconds)}`;
}

/** A position in a video as m:ss. */
export function formatClock(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

/** An age in one unit, for narrow columns: now, 10 min, 3.9 h. */
export const formatAge = (seconds: number): string => (seconds < 5 ? 'now' : formatCoarseDuration(seconds));

/** The time elapsed since then, such as "3 min ago". */
export function formatAgo(then: string | number | Date, now: number): string {
  const seconds = (now - new Date(then).getTime()) / 1000;
  return seconds < 5 ? 'just now' : `${formatDuration(seconds)} ago`;
}

/** The exact date and time, such as 26 Nov 2026, 20:56:22. */
export function formatExact(then: string | number | Date): string {
  return new Date(then).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

/** A date without its time. */
export function formatDay(then: string | number | Date): string {
  return new Date(then).toLocaleDateString('en-GB', { dateStyle: 'medium' });
}

/** A size in binary units. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return DASH;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value).toLocaleString('en')}${NBSP}${units[unit] ?? ''}`;
}

/** "1 run", "2 runs". */
export function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${formatInteger(count)} ${count === 1 ? singular : many}`;
}

/** Digits in groups of three with the same separator throughout. */
const GROUPED = /^[+-]?[1-9]\d{0,2}([,_ \u00a0])\d{3}(?:\1\d{3})*(?:\.\d*)?(?:e[+-]?\d+)?$/i;

/** Parses a typed number, with or without thousands separators or an exponent; NaN for anything else. */
export function parseNumber(raw: string): number {
  const typed = raw.trim().replaceAll('\u2212', '-');
  if (typed === '') return NaN;
  // A comma that separates no group may be a decimal comma: rejected rather than ignored.
  return Number(GROUPED.test(typed) ? typed.replace(/[,_ \u00a0]/g, '') : typed);
}

/** Evaluation protocols, named as in the service's figures. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  noop_starts: 'no-op starts',
  noop_starts_5min: 'no-op starts, 5 min',
  random_seeds: 'random seeds',
  human_starts: 'human starts',
  agent_starts: 'agent starts',
  sticky_actions_5min: 'sticky actions, 5 min',
  sticky_actions_30min: 'sticky actions, 30 min',
  plain: 'standard resets',
};

export function protocolLabel(protocol: string): string {
  const [kind = '', set] = protocol.split(':');
  if (set !== undefined) return `${protocolLabel(kind)}, ${set.replace('@', ' v')}`;
  const base = protocol.replace(/_greedy$/, '');
  const label = PROTOCOLS[base] ?? base.replaceAll('_', ' ');
  return base === protocol ? label : `${label}, greedy`;
}

/** A score with no more digits than were published. */
export const formatPublished = (score: number): string =>
  Math.abs(score) < 10 ? formatNumber(score) : formatScore(score);

/** A published score with its source and protocol, in words. */
export const describePublished = (published: {
  label: string;
  score: number;
  protocol: string;
  source: string;
}): string =>
  `${published.label} ${formatPublished(published.score)}: ${published.source}; ${protocolLabel(published.protocol)}`;
