import { expect, it } from 'vitest';
import { parseNumber } from './number';

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
])('%s is a number', (raw, value) => expect(parseNumber(raw)).toBe(value));

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
])('%s is none', (raw) => expect(parseNumber(raw)).toBeNaN());
