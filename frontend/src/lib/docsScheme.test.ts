import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const KEY = 'callboard-color-scheme';

beforeEach(() => {
  localStorage.clear();
  vi.stubGlobal('__md_set', vi.fn());
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  document.body.innerHTML = `
    <input type="radio" name="__palette" id="__palette_0" data-md-color-scheme="default" />
    <input type="radio" name="__palette" id="__palette_1" data-md-color-scheme="slate" />`;
  // As the documentation's pages do.
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  const run = new Function(readFileSync('../docs/scheme.js', 'utf8')) as () => void;
  run();
});

afterEach(() => vi.unstubAllGlobals());

it('a theme chosen in the documentation holds on the pages, also when the theme itself clicks its radio button', () => {
  // As it does for Enter.
  document.querySelector<HTMLInputElement>('#__palette_1')?.click();
  expect(localStorage.getItem(KEY)).toBe('dark');
  document.querySelector<HTMLInputElement>('#__palette_0')?.click();
  expect(localStorage.getItem(KEY)).toBe('light');
});
