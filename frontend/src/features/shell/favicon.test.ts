import { expect, it } from 'vitest';
import { faviconOf } from './favicon';

const filled = (progress: number): string | undefined =>
  /y="([\d.]+)" width="32" height="([\d.]+)"/.exec(decodeURIComponent(faviconOf(progress)))?.[0];

it('the favicon is filled from below by the progress, in steps of a twentieth', () => {
  expect(faviconOf(null)).toBe('/favicon.svg');
  expect(filled(0)).toBe('y="32" width="32" height="0"');
  expect(filled(0.5)).toBe('y="16" width="32" height="16"');
  expect(filled(0.51)).toBe(filled(0.5));
  expect(filled(1.2)).toBe('y="0" width="32" height="32"');
});
