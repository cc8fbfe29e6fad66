/** The texts of a drawn SVG: as outlines, or as plain lines of text for a PDF. */
import type { Command } from 'opentype.js';
import { type FontPart, type Piece, piecesOf } from './fonts';

const SVG = 'http://www.w3.org/2000/svg';
const DIGITS = 2;
/** The width of a character that the font lacks, in em. */
const MISSING_WIDTH_EM = 0.6;

/** One line of a text, at its start. */
type Line = { text: string; x: number; y: number };

const px = (value: string | null | undefined, size: number): number => {
  const number = Number.parseFloat(value ?? '');
  if (!Number.isFinite(number)) return 0;
  return value?.endsWith('em') ? number * size : number;
};

const styleOf = (element: Element, name: string): string =>
  (element as SVGElement).style.getPropertyValue(name) || (element.getAttribute(name) ?? '');

const inherited = (element: Element, name: string): string => {
  for (let ancestor: Element | null = element; ancestor; ancestor = ancestor.parentElement) {
    const value = styleOf(ancestor, name);
    if (value) return value;
  }
  return '';
};

/** The width of a text, without kerning and ligatures, which PDFs do not have either. */
export function widthIn(parts: readonly FontPart[], text: string, size: number): number {
  return piecesOf(text, parts).reduce((sum, piece) => sum + pieceWidth(piece, size), 0);
}

const advance = ({ font }: FontPart, character: string, size: number): number =>
  (font.charToGlyph(character).advanceWidth / font.unitsPerEm) * size;

const pieceWidth = ({ text, part }: Piece, size: number): number =>
  Array.from(text).reduce(
    (sum, character) => sum + (part ? advance(part, character, size) : MISSING_WIDTH_EM * size),
    0,
  );

/** The lines of a text: plotly gives each a `tspan` with its own place. */
function linesOf(element: Element, size: number): Line[] {
  const at = (line: Element): Pick<Line, 'x' | 'y'> => ({
    x: px(line.getAttribute('x') ?? element.getAttribute('x'), size),
    y:
      px(line.getAttribute('y') ?? element.getAttribute('y'), size) + px(line.getAttribute('dy') ?? '', size),
  });
  const spans = [...element.querySelectorAll('tspan.line')];
  const lines = spans.length > 0 ? spans : [element];
  return lines.map((line) => ({ text: line.textContent, ...at(line) }));
}

type Placed = Line & { size: number; fill: string; pieces: readonly Piece[]; transform: string | null };

function placedLines(element: Element, parts: readonly FontPart[]): Placed[] {
  const size = px(inherited(element, 'font-size'), 0);
  const anchor = inherited(element, 'text-anchor');
  const fill = inherited(element, 'fill') || '#000';
  return linesOf(element, size)
    .filter(({ text }) => text.trim() !== '')
    .map((line) => {
      const width = widthIn(parts, line.text, size);
      const x = line.x - (anchor === 'end' ? width : anchor === 'middle' ? width / 2 : 0);
      const transform = element.getAttribute('transform');
      return { ...line, x, size, fill, pieces: piecesOf(line.text, parts), transform };
    });
}

/** A box in place of a character that the font lacks. */
const missing = (x: number, y: number, size: number): string => {
  const [left, right, top] = [x + 0.08 * size, x + (MISSING_WIDTH_EM - 0.08) * size, y - 0.7 * size];
  return `M${left} ${y}H${right}V${top}H${left}ZM${left + 1} ${y - 1}V${top + 1}H${right - 1}V${y - 1}Z`;
};

const COORDINATES = ['x1', 'y1', 'x2', 'y2', 'x', 'y'] as const;

const rounded = (coordinate: number): number => Number(coordinate.toFixed(DIGITS)) || 0;

/**
 * A glyph's path. The font library's own leaves out the space before a coordinate below 0, for its sign, but writes
 * -0.001 as 0, which then belongs to the number before it.
 */
const pathData = (commands: readonly Command[]): string =>
  commands
    .map(
      (command) =>
        command.type +
        COORDINATES.flatMap((name) => {
          const coordinate = command[name];
          return coordinate === undefined ? [] : [rounded(coordinate)];
        }).join(' '),
    )
    .join('');

function outlined({ text, x, y, size, fill, pieces, transform }: Placed, document: Document): Element {
  const path = document.createElementNS(SVG, 'path');
  let at = x;
  const data = pieces.flatMap(({ text: piece, part }) =>
    Array.from(piece, (character) => {
      const start = at;
      at += part ? advance(part, character, size) : MISSING_WIDTH_EM * size;
      if (!part) return missing(start, y, size);
      return pathData(part.font.charToGlyph(character).getPath(start, y, size).commands);
    }),
  );
  path.setAttribute('d', data.join(''));
  path.setAttribute('fill', fill);
  path.setAttribute('aria-label', text);
  path.setAttribute('class', 'label');
  if (transform) path.setAttribute('transform', transform);
  return path;
}

function written({ x, y, size, fill, pieces, transform }: Placed, document: Document): Element {
  const group = document.createElementNS(SVG, 'g');
  if (transform) group.setAttribute('transform', transform);
  let at = x;
  for (const piece of pieces) {
    const text = document.createElementNS(SVG, 'text');
    text.textContent = piece.text;
    const attributes = {
      x: String(at),
      y: String(y),
      'font-family': piece.part?.family ?? '',
      'font-size': String(size),
      'font-weight': 'normal',
      fill,
    };
    for (const [name, value] of Object.entries(attributes)) text.setAttribute(name, value);
    if (piece.part) group.append(text);
    else {
      const box = document.createElementNS(SVG, 'path');
      box.setAttribute(
        'd',
        Array.from(piece.text)
          .map((_, n) => missing(at + n * MISSING_WIDTH_EM * size, y, size))
          .join(''),
      );
      box.setAttribute('fill', fill);
      group.append(box);
    }
    at += pieceWidth(piece, size);
  }
  return group;
}

/** The texts of an SVG. */
export const textsOf = (svg: Element): string[] =>
  [...svg.querySelectorAll('text')].map(({ textContent }) => textContent);

/** Replaces the texts of an SVG, by their outlines or by lines of plain text. */
export function replaceTexts(svg: Element, parts: readonly FontPart[], by: 'outlines' | 'lines'): void {
  const replace = by === 'outlines' ? outlined : written;
  for (const element of svg.querySelectorAll('text')) {
    const lines = placedLines(element, parts).map((line) => replace(line, svg.ownerDocument));
    element.replaceWith(...lines);
  }
}

/** The characters of an SVG that no part of the font has. */
export const missingCharacters = (svg: Element, parts: readonly FontPart[]): string =>
  [
    ...new Set(
      textsOf(svg).flatMap((text) =>
        piecesOf(text, parts).flatMap((piece) =>
          piece.part || !piece.text.trim() ? [] : Array.from(piece.text),
        ),
      ),
    ),
  ].join('');

type Box = Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>;

const overlap = (a: Box, b: Box, tolerance: number): boolean =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > tolerance &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > tolerance;

/** What a reader could not read of a shown SVG with outlines: labels outside it, and pairs that overlap. */
export function labelProblems(svg: Element): { outside: string[]; overlapping: [string, string][] } {
  const page = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll('.label')].map((label) => ({
    text: label.getAttribute('aria-label') ?? '',
    box: label.getBoundingClientRect(),
  }));
  const tolerance = 0.5;
  const isOutside = ({ left, right, top, bottom }: Box): boolean =>
    left < page.left - tolerance ||
    right > page.right + tolerance ||
    top < page.top - tolerance ||
    bottom > page.bottom + tolerance;
  const outside = labels.filter(({ box }) => isOutside(box)).map(({ text }) => text);
  const overlapping = labels.flatMap((a, at) =>
    labels
      .slice(at + 1)
      .filter((b) => overlap(a.box, b.box, tolerance))
      .map((b): [string, string] => [a.text, b.text]),
  );
  return { outside, overlapping };
}
