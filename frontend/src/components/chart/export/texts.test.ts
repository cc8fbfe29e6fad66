import { readFileSync } from 'node:fs';
import { parse } from 'opentype.js';
import { beforeAll, expect, it } from 'vitest';
import type { FontPart } from './fonts';
import { missingCharacters, overlap, replaceTexts, widthIn } from './texts';
import { sfntOf } from './woff';

const part = async (family: string, script: string): Promise<FontPart> => {
  const file = `node_modules/@fontsource/inter/files/inter-${script}-400-normal.woff`;
  const woff = Uint8Array.from(readFileSync(file)).buffer;
  const sfnt = await sfntOf(woff);
  return { family, file: sfnt, woff, font: parse(sfnt) };
};

let parts: FontPart[] = [];

beforeAll(async () => {
  parts = [await part('Inter', 'latin'), await part('Inter Greek', 'greek')];
});

function svgWith(texts: string): Element {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.innerHTML = texts;
  return svg;
}

const STYLE = 'font-size: 10px; fill: rgb(1, 2, 3)';

it('replaceTexts writes one label for each line, in its colour and place', () => {
  const svg = svgWith(
    `<text style="${STYLE}" text-anchor="start" transform="rotate(-90)">
      <tspan class="line" x="5" y="20" dy="0em">first</tspan><tspan class="line" x="5" y="20" dy="1.3em">second</tspan>
    </text>`,
  );
  replaceTexts(svg, parts);
  const labels = [...svg.querySelectorAll('.label')];
  expect(labels.map((label) => label.getAttribute('aria-label'))).toEqual(['first', 'second']);
  expect(labels[0]?.getAttribute('transform')).toBe('rotate(-90)');
  const texts = labels.map((label) => label.querySelector('text'));
  expect(texts.map((text) => text?.textContent)).toEqual(['first', 'second']);
  expect(texts[0]?.getAttribute('fill')).toBe('rgb(1, 2, 3)');
  expect(texts.map((text) => Number(text?.getAttribute('y')))).toEqual([20, 33]);
});

it('replaceTexts places lines by their anchor, each script in its part of the font', () => {
  const svg = svgWith(`<text x="100" y="10" style="${STYLE}" text-anchor="end">ab ε</text>`);
  replaceTexts(svg, parts);
  const [latin, greek] = svg.querySelectorAll('text');
  expect([latin?.textContent, latin?.getAttribute('font-family')]).toEqual(['ab ', 'Inter']);
  expect([greek?.textContent, greek?.getAttribute('font-family')]).toEqual(['ε', 'Inter Greek']);
  const start = 100 - widthIn(parts, 'ab ε', 10);
  expect(Number(latin?.getAttribute('x'))).toBeCloseTo(start);
  expect(Number(greek?.getAttribute('x'))).toBeCloseTo(start + widthIn(parts, 'ab ', 10));
});

it('characters that no part of the font has are named, and drawn as boxes', () => {
  const svg = svgWith(`<text x="0" y="10" style="${STYLE}">a 学习 学</text>`);
  expect(missingCharacters(svg, parts)).toBe('学习');
  replaceTexts(svg, parts);
  expect(svg.querySelectorAll('path')).toHaveLength(2);
});

it('labels that stand aslant beside each other do not overlap, though their bounds do', () => {
  const slanted = (left: number) =>
    [
      [0, 0],
      [30, 0],
      [30, 8],
      [0, 8],
    ].map(([x = 0, y = 0]) => ({ x: left + (x - y) * Math.SQRT1_2, y: (x + y) * Math.SQRT1_2 }));
  expect(overlap(slanted(0), slanted(12))).toBe(false);
  expect(overlap(slanted(0), slanted(8))).toBe(true);
});
