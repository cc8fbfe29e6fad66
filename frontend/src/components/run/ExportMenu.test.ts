import { expect, test } from 'vitest';
import { exportUrl } from './ExportMenu';

test('one run is exported from its own address', () => {
  expect(exportUrl({ ids: ['A'] }, 'csv')).toBe('/api/v1/runs/A/export?format=csv');
});

test('several runs are exported in one file', () => {
  expect(exportUrl({ ids: ['A', 'B'] }, 'parquet')).toBe('/api/v1/runs/export?run=A&run=B&format=parquet');
});

test('everything that matches is exported by its filter', () => {
  const target = { filter: 'archived:false (tag:"a&b")', expected: 300 };
  expect(exportUrl(target, 'csv')).toBe(
    '/api/v1/runs/export?filter=archived%3Afalse%20(tag%3A%22a%26b%22)&format=csv',
  );
});
