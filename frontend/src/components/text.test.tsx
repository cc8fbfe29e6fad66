import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TruncatedName } from './text';

const NAME = 'paac ALE/Pong-v5 learning_rate=0.003 seed 12';
let width = 0;
let resized: (() => void)[] = [];

/** The number of lines of so many letters that break between words. */
function linesOfWords(text: string, perLine: number): number {
  let [lines, used] = [1, 0];
  for (const { length } of text.split(' ')) {
    if (used > 0 && used + 1 + length > perLine) [lines, used] = [lines + 1, 0];
    used += length + (used > 0 ? 1 : 0);
  }
  return lines;
}

/** Layout with letters of 10 pixels, which the test's DOM lacks. */
beforeEach(() => {
  resized = [];
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockImplementation(() => width);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(32);
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockImplementation(function (this: HTMLElement) {
    return 16 * linesOfWords(this.textContent, Math.floor(width / 10));
  });
  vi.spyOn(Range.prototype, 'getClientRects').mockImplementation(function (this: Range) {
    const letters = this.toString().length;
    const perLine = Math.floor(width / 10);
    const wraps = (this.startContainer as HTMLElement).className.includes('lines');
    const lines = Array.from({ length: wraps ? Math.ceil(letters / perLine) : 1 }, (_, line) => ({
      top: 16 * line,
      left: 0,
      right: wraps ? 10 * Math.min(perLine, letters - line * perLine) : 10 * letters,
    }));
    // A line that is cut, as Chromium describes it: whole, and up to the dots.
    const cut = !wraps && letters > perLine ? [{ top: 0, left: 0, right: width - 15 }] : [];
    return [...lines, ...cut] as unknown as DOMRectList;
  });
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(callback: () => void) {
        resized.push(callback);
      }
      observe = vi.fn();
      disconnect = vi.fn();
    },
  );
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** What can be read: the text without its hidden parts. */
function shown(): string {
  const element = screen.getByTitle(NAME);
  expect(element.textContent).toBe(NAME); // search and copying have all of it
  return Array.from(element.childNodes, (node) => (node.nodeName === 'SPAN' ? '…' : node.textContent)).join(
    '',
  );
}

it.each([1, 2] as const)('TruncatedName in %i lines hides the middle of a name without room', (lines) => {
  width = 240;
  render(<TruncatedName name={NAME} lines={lines} />);
  if (lines === 2) {
    expect(shown()).toBe(NAME);
    width = 160;
    act(() => resized.forEach((callback) => callback()));
  }
  expect(shown()).toMatch(/^paac .*….* 12$/);
  expect(10 * shown().length).toBeLessThanOrEqual(lines * width);
  expect(10 * shown().length).toBeGreaterThan(0.75 * lines * width); // no more is hidden than must be
});

it('TruncatedName hides what stands beside the name before it hides its middle', () => {
  width = 240;
  render(<TruncatedName name={NAME} repeated="paac ALE/Pong-v5 " lines={2} />);
  expect(shown()).toBe(NAME); // with room for all of it, all of it
  width = 175;
  act(() => resized.forEach((callback) => callback()));
  expect(shown()).toBe('…learning_rate=0.003 seed 12');
  width = 110;
  act(() => resized.forEach((callback) => callback()));
  expect(shown()).toMatch(/^…learn.*….* 12$/);
});

it.each([
  [190, 3, true],
  [270, 2, false],
])('TruncatedName at %i pixels, where words take %i lines, fills lines: %s', (pixels, n, filled) => {
  width = pixels;
  expect(linesOfWords(NAME, pixels / 10)).toBe(n);
  render(<TruncatedName name={NAME} lines={2} />);
  expect(screen.getByTitle(NAME).className.includes('filled')).toBe(filled);
});

it('TruncatedName shows a name as soon as it has room', () => {
  width = 120;
  render(<TruncatedName name={NAME} />);
  expect(shown()).toContain('…');
  width = 600;
  act(() => resized.forEach((callback) => callback()));
  expect(shown()).toBe(NAME);
});
