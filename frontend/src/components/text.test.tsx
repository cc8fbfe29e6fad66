import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Score, TruncatedName } from './text';

const NAME = 'paac ALE/Pong-v5 learning_rate=0.003 seed 12';
let width = 0;
let resized: (() => void)[] = [];

const WORDS = /(?<=[_,/\s]|=(?!-)|(?<![\d.]e|[=_,/\s]|^)-)/iu;

/** The lines of a text that breaks at separators, into lines of so many letters where words are no longer. */
function linesOf(text: string, perLine: number): string[] {
  const lines = [''];
  for (const word of text.split(WORDS)) {
    const last = lines.at(-1) ?? '';
    if (last !== '' && last.length + word.trimEnd().length > perLine) lines.push(word);
    else lines[lines.length - 1] = last + word;
  }
  return lines.map((line) => line.trimEnd());
}

/** What can be read: the text with dots in place of its hidden parts, and the line that such a part ends. */
const readable = (element: HTMLElement): string =>
  Array.from(element.childNodes, (node) =>
    node.nodeName === 'SPAN'
      ? `…${(node as HTMLElement).className.includes('ends') ? '\n' : ''}`
      : node.textContent,
  ).join('');

const drawn = (element: HTMLElement): string[] =>
  readable(element)
    .split('\n')
    .flatMap((line) => linesOf(line, Math.floor(width / 10)));

/** Layout with letters of 10 pixels, which the test's DOM lacks. */
beforeEach(() => {
  resized = [];
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockImplementation(() => width);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(32);
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockImplementation(function (this: HTMLElement) {
    return 16 * drawn(this).length;
  });
  vi.spyOn(HTMLElement.prototype, 'scrollWidth', 'get').mockImplementation(function (this: HTMLElement) {
    return 10 * Math.max(...drawn(this).map(({ length }) => length));
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

/** What can be read of the name. */
function shown(name = NAME): string {
  const element = screen.getByTitle(name);
  expect(element.textContent).toBe(name); // search and copying have all of it
  return readable(element);
}

it('TruncatedName in a line hides the middle of a name without room', () => {
  width = 240;
  render(<TruncatedName name={NAME} />);
  expect(shown()).toMatch(/^paac .*….* 12$/);
  expect(10 * shown().length).toBeLessThanOrEqual(width);
  expect(10 * shown().length).toBeGreaterThan(0.75 * width); // no more is hidden than must be
});

it.each([
  ['learning_rate=0.0028 seed 0', 'learn…0.0028 seed 0'],
  ['learning_rate=6.9e-05 seed 0', 'lear…6.9e-05 seed 0'],
  ['entropy_coefficient=-0.5 x=100k', 'entropy…-0.5 x=100k'],
  ['n_e=12345678 learning_rate=7', 'n_e=…ng_rate=7'],
])('TruncatedName in a line shows no part of a number of %s', (name, text) => {
  width = 220;
  render(<TruncatedName name={name} />);
  expect(shown(name)).toBe(text);
});

it.each([
  [240, NAME, ['paac ALE/Pong-v5 …', 'rate=0.003 seed 12'], ''],
  [280, NAME, ['paac ALE/Pong-v5 learning_', 'rate=0.003 seed 12'], ''],
  [150, NAME, ['paac ALE/…', 'seed 12'], ''],
  [240, NAME, ['…learning_rate=0.003', 'seed 12'], 'paac ALE/Pong-v5 '],
  [190, 'clip=0.1_entropy=0.01_gradient_norm=40_rate=2e-4', ['clip=0.1_…', '40_rate=2e-4'], ''],
  [150, 'Donaudampfschifffahrtsgesellschaft', ['Donaudampfsc…', 'gesellschaft'], ''],
  [200, 'Donaudampfschifffahrtsgesel', ['Donaudampfschifff…', 'hrtsgesel'], ''],
])('TruncatedName in two lines of %i pixels breaks %s at separators: %j', (pixels, name, lines, repeated) => {
  width = pixels;
  render(<TruncatedName name={name} repeated={repeated} lines={2} />);
  shown(name);
  expect(drawn(screen.getByTitle(name))).toEqual(lines);
});

it.each([
  ['alpha=1e-4 beta=-1', ['alpha=', '1e-4 ', 'beta=-1']],
  ['x=2.E-05_-1_pong-v5', ['x=', '2.E-05_', '-1_', 'pong-', 'v5']],
])('TruncatedName breaks %s neither around a sign nor at an exponent', (name, parts) => {
  width = 600;
  render(<TruncatedName name={name} lines={2} />);
  const wrapped = screen.getByTitle(name).innerHTML.split('<wbr>');
  expect(wrapped).toEqual(parts);
});

it.each([
  ['paac_one_game learning lr=1e-4 seed=3', 120, 'seed=3'],
  ['paac_one_game learning lr=1e-4 seed=3 lr=1', 140, 'seed=3 lr=1'],
])('TruncatedName begins the second line of %s with a whole word', (name, pixels, last) => {
  width = pixels;
  render(<TruncatedName name={name} lines={2} />);
  expect(drawn(screen.getByTitle(name)).at(-1)).toBe(last);
});

it('TruncatedName shows a name as soon as it has room', () => {
  width = 120;
  render(<TruncatedName name={NAME} />);
  expect(shown()).toContain('…');
  width = 600;
  act(() => resized.forEach((callback) => callback()));
  expect(shown()).toBe(NAME);
});

it.each([
  [3.95, '3.95', ''],
  [76, '76.0', '0'],
  [12_345, '12,345', '.00'],
  [null, '–', '.00'],
])('Score %d leaves room for the decimals that it lacks', (value, text, room) => {
  render(<Score value={value} />);
  expect(screen.getByText(text).dataset.room).toBe(room);
});
