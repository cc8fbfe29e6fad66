import { describe, expect, it } from 'vitest';
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatRough,
  formatScore,
  formatSetting,
  plural,
} from './format';

const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('formatCount', () => {
  it.each([
    [0, '0'],
    [9_999, '9,999'],
    [12_345, '12.3 k'],
    [999_999, '1.00 M'],
    [6_000_000, '6.00 M'],
    [123_456_789, '123 M'],
    [-45_000, '−45.0 k'],
  ])('%d is %s', (value, text) => expect(plain(formatCount(value))).toBe(text));

  it('shows a dash where there is nothing yet', () => expect(formatCount(null)).toBe('–'));
});

describe('formatScore', () => {
  it.each([
    [-20.74, '−20.7'],
    [0, '0.0'],
    [12345.6, '12,346'],
  ])('%d is %s', (value, text) => expect(formatScore(value)).toBe(text));
});

describe('formatNumber', () => {
  it.each([
    [0.0224, '0.0224'],
    [0.00001234, '1.234e−5'],
    [1234.5678, '1,234.57'],
    [Infinity, '∞'],
    [NaN, 'NaN'],
  ])('%d is %s', (value, text) => expect(formatNumber(value)).toBe(text));
});

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [0.4, '0.4 s'],
    [59.9, '59 s'],
    [3_599, '59 min'],
    [3_900, '1 h 05 min'],
    [100_000, '1 d 3 h'],
  ])('%d s is %s', (value, text) => expect(plain(formatDuration(value))).toBe(text));
});

describe('formatRough', () => {
  it.each([
    [42, '42 s'],
    [3_599, '59 min'],
    [14_220, '3.9 h'],
    [86_399, '23 h'],
    [220_000, '2.5 d'],
    [1_700_000, '19 d'],
  ])('%d s is %s', (value, text) => expect(plain(formatRough(value))).toBe(text));
});

it('tells how long ago', () => {
  const now = Date.parse('2026-01-01T00:01:00Z');
  expect(plain(formatAgo('2026-01-01T00:00:15Z', now))).toBe('45 s ago');
  expect(formatAgo('2026-01-01T00:01:02Z', now)).toBe('just now');
});

it('shows sizes in binary units', () => {
  expect(plain(formatBytes(2.7 * 2 ** 20))).toBe('2.7 MiB');
  expect(plain(formatBytes(512))).toBe('512 B');
});

it('shows settings as they would be typed', () => {
  expect(formatSetting(0.00001)).toBe('0.00001');
  expect(formatSetting(true)).toBe('yes');
  expect(formatSetting(null)).toBe('none');
  expect(formatSetting(1_000_000)).toBe('1,000,000');
});

it('counts in words', () => {
  expect(plural(1, 'run')).toBe('1 run');
  expect(plural(3, 'run')).toBe('3 runs');
});
