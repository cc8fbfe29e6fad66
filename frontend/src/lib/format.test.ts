import { describe, expect, it } from 'vitest';
import {
  formatAge,
  formatAgo,
  formatBytes,
  formatCoarseDuration,
  formatCount,
  formatDay,
  formatDuration,
  formatExact,
  formatNumber,
  formatRate,
  formatScore,
  formatTick,
  formatTimeLeft,
  formatValue,
  parseNumber,
  plural,
} from './format';
import NUMBERS from './numbers.json';
import SCORES from './scores.json';

const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('formatCount', () => {
  it.each([
    [0, '0'],
    [9_999, '9,999'],
    [9_999.4, '9,999'],
    [9_999.6, '10.0k'],
    [-9_999.5, '−10.0k'],
    [12_345, '12.3k'],
    [999_999, '1.0M'],
    [6_000_000, '6.0M'],
    [123_456_789, '123M'],
    [-45_000, '−45.0k'],
  ])('formats %d as %s', (value, text) => expect(plain(formatCount(value))).toBe(text));

  it('returns a dash for what is no number', () =>
    expect([null, NaN, Infinity].map(formatCount)).toEqual(['–', '–', '–']));
});

// The service's ticks, and the script that redraws a figure with matplotlib, are tested with the same numbers.
it.each(NUMBERS as [number, string, string, string?][])(
  'formatCount and formatTick format %d, %s in the chart library, as %s',
  (value, _, text, tick = text) => expect([formatCount(value), formatTick(value)]).toEqual([text, tick]),
);

it('formatTick writes numbers that JSON does not have', () =>
  expect([NaN, Infinity, -Infinity, -0].map(formatTick)).toEqual(['NaN', '∞', '−∞', '0']));

describe('formatScore', () => {
  it.each(SCORES as [number | null, string][])('formats %d as %s', (value, text) =>
    expect(formatScore(value)).toBe(text),
  );
});

describe('formatNumber', () => {
  it.each([
    [0.0224, '0.0224'],
    [0.00001234, '1.234e−5'],
    [0.00069, '6.9e−4'],
    [-0.00002, '−2e−5'],
    [1.5e9, '1.5e9'],
    [1234.5678, '1,234.57'],
    [Infinity, '∞'],
    [NaN, 'NaN'],
  ])('formats %d as %s', (value, text) => expect(formatNumber(value)).toBe(text));
});

describe('formatRate', () => {
  it.each([
    [0.04, '0.04'],
    [9.96, '9.96'],
    [10.4, '10'],
    [12_345, '12.3k'],
  ])('formats %d per second as %s', (value, text) => expect(plain(formatRate(value))).toBe(text));

  it('returns a dash without a rate', () => expect([null, undefined].map(formatRate)).toEqual(['–', '–']));
});

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [0.4, '0.4 s'],
    [59.9, '59 s'],
    [3_599, '59 min'],
    [3_900, '1 h 05 min'],
    [100_000, '1 d 3 h'],
  ])('formats %d s as %s', (value, text) => expect(plain(formatDuration(value))).toBe(text));
});

describe('formatCoarseDuration', () => {
  it.each([
    [42, '42 s'],
    [3_599, '59 min'],
    [14_220, '3.9 h'],
    [86_399, '23 h'],
    [220_000, '2.5 d'],
    [1_700_000, '19 d'],
  ])('formats %d s as %s', (value, text) => expect(plain(formatCoarseDuration(value))).toBe(text));
});

it('formatAge is "now" below 5 s', () => {
  expect([0, 0.5, 4.9, 5, 42].map((seconds) => plain(formatAge(seconds)))).toEqual([
    'now',
    'now',
    'now',
    '5 s',
    '42 s',
  ]);
});

it('formatAgo returns the time elapsed, or "just now" below 5 s', () => {
  const now = Date.parse('2026-01-01T00:01:00Z');
  expect(plain(formatAgo('2026-01-01T00:00:15Z', now))).toBe('45 s ago');
  expect(formatAgo('2026-01-01T00:01:02Z', now)).toBe('just now');
});

it('formatBytes uses binary units', () => {
  expect(plain(formatBytes(2.7 * 2 ** 20))).toBe('2.7 MiB');
  expect(plain(formatBytes(512))).toBe('512 B');
});

it('formatValue returns config values as they would be typed', () => {
  expect(formatValue(0.00001)).toBe('0.00001');
  expect(formatValue(true)).toBe('yes');
  expect(formatValue(null)).toBe('none');
  expect(formatValue(1_000_000)).toBe('1,000,000');
});

it('plural adds an s for any count but 1', () => {
  expect(plural(1, 'run')).toBe('1 run');
  expect(plural(3, 'run')).toBe('3 runs');
});

describe('parseNumber', () => {
  it.each([
    ['1,000', 1000],
    ['10,000,000', 10_000_000],
    ['10 000 000', 10_000_000],
    ['10\u00a0000', 10_000],
    ['10_000', 10_000],
    ['−1,000.5', -1000.5],
    [' 1e6 ', 1e6],
    ['0.001', 0.001],
    ['1000000', 1_000_000],
  ])('parses "%s"', (raw, value) => expect(parseNumber(raw)).toBe(value));

  it.each([
    '0,001',
    '1,0,0',
    '40,5',
    '1,00',
    '1,0000',
    '1000,000',
    '1,000 000',
    '1,000,',
    '1.000,5',
    '1 2',
    '',
  ])('returns NaN for "%s"', (raw) => expect(parseNumber(raw)).toBeNaN());
});

it('formatTimeLeft has one unit', () => {
  const texts = [20, 90, 3000, 3580, 14_000, 64_320, 200_000, 1e6].map((seconds) => formatTimeLeft(seconds));
  expect(texts.map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
    'under 1 min',
    'about 2 min',
    'about 50 min',
    'about 1 h',
    'about 4 h',
    'about 18 h',
    'about 2 d',
    'about 12 d',
  ]);
  expect(formatTimeLeft(null)).toBe('–');
  expect(formatTimeLeft(3600, 420)).toBe('7\u00a0min to\u00a01\u00a0h');
  expect(formatTimeLeft(3600, 2000)).toBe('about\u00a01\u00a0h');
});

it('dates are written in British order, with hours from 0 to 23', () => {
  const evening = new Date(2026, 10, 6, 20, 5, 9);
  expect(formatExact(evening)).toBe('6 Nov 2026, 20:05:09');
  expect(formatDay(evening)).toBe('6 Nov 2026');
});
