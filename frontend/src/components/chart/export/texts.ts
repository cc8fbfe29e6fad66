/** The texts of a drawn SVG as plain lines, each in the parts of the font that it needs. */
import { type FontPart, type Piece, piecesOf } from './fonts';

const SVG = 'http://www.w3.org/2000/svg';
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

function written({ text: line, x, y, size, fill, pieces, transform }: Placed, document: Document): Element {
  const group = document.createElementNS(SVG, 'g');
  group.setAttribute('class', 'label');
  group.setAttribute('aria-label', line);
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
      // As they are measured.
      style: 'font-kerning: none; font-variant-ligatures: none; white-space: pre',
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

/** Replaces each text of an SVG by plain lines of text at their places. */
export function replaceTexts(svg: Element, parts: readonly FontPart[]): void {
  for (const element of svg.querySelectorAll('text')) {
    const lines = placedLines(element, parts).map((line) => written(line, svg.ownerDocument));
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
type Point = { x: number; y: number };

/** The length of an edge at which labels still count as apart, in px. */
const TOLERANCE_PX = 0.5;

/** Whether two convex shapes overlap: no edge of either separates them. */
export function overlap(a: readonly Point[], b: readonly Point[]): boolean {
  const edges = [a, b].flatMap((corners) =>
    corners.map((corner, at): [Point, Point] => [corner, corners[(at + 1) % corners.length] ?? corner]),
  );
  return edges.every(([from, to]) => {
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (length === 0) return true;
    const [across_x, across_y] = [(from.y - to.y) / length, (to.x - from.x) / length];
    const along = ({ x, y }: Point): number => x * across_x + y * across_y;
    const [of_a, of_b] = [a.map(along), b.map(along)];
    return (
      Math.min(Math.max(...of_a), Math.max(...of_b)) - Math.max(Math.min(...of_a), Math.min(...of_b)) >
      TOLERANCE_PX
    );
  });
}

/** The corners of a label as it is shown, which may be turned. */
function cornersOf(label: SVGGraphicsElement): Point[] {
  const { x, y, width, height } = label.getBBox();
  const matrix = label.getScreenCTM();
  return [
    new DOMPoint(x, y),
    new DOMPoint(x + width, y),
    new DOMPoint(x + width, y + height),
    new DOMPoint(x, y + height),
  ].map((corner) => (matrix ? corner.matrixTransform(matrix) : corner));
}

/** What a reader could not read of a shown SVG: labels outside it, and pairs that overlap. */
export function labelProblems(svg: Element): { outside: string[]; overlapping: [string, string][] } {
  const page = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll<SVGGraphicsElement>('.label')].map((label) => ({
    text: label.getAttribute('aria-label') ?? '',
    box: label.getBoundingClientRect(),
    corners: cornersOf(label),
  }));
  const isOutside = ({ left, right, top, bottom }: Box): boolean =>
    left < page.left - TOLERANCE_PX ||
    right > page.right + TOLERANCE_PX ||
    top < page.top - TOLERANCE_PX ||
    bottom > page.bottom + TOLERANCE_PX;
  const outside = labels.filter(({ box }) => isOutside(box)).map(({ text }) => text);
  const overlapping = labels.flatMap((a, at) =>
    labels
      .slice(at + 1)
      .filter((b) => overlap(a.corners, b.corners))
      .map((b): [string, string] => [a.text, b.text]),
  );
  return { outside, overlapping };
}
