/** The font of exported figures, for measuring and for embedding. */
import cyrillic from '@fontsource/inter/files/inter-cyrillic-400-normal.woff?url';
import greek from '@fontsource/inter/files/inter-greek-400-normal.woff?url';
import latinExtended from '@fontsource/inter/files/inter-latin-ext-400-normal.woff?url';
import latin from '@fontsource/inter/files/inter-latin-400-normal.woff?url';
import licence from '@fontsource/inter/LICENSE?url';
import type { Font } from 'opentype.js';
import { sfntOf } from './woff';

/** The font's name in figures, on the page and in PDFs. */
export const FAMILY = 'Inter';

/** The address of the font's licence, which is served beside it. */
export const LICENCE = licence;

/** A part of the font: a file holds the characters of some scripts. */
export type FontPart = {
  family: string;
  font: Font;
  /** The file as TrueType, for PDFs. */
  file: ArrayBuffer;
  /** The file as WOFF, for SVGs. */
  woff: ArrayBuffer;
};

const LATIN = { family: FAMILY, url: latin };
const OTHERS = [
  { family: `${FAMILY} Greek`, url: greek },
  { family: `${FAMILY} Cyrillic`, url: cyrillic },
  { family: `${FAMILY} Latin Extended`, url: latinExtended },
];

const loading = new Map<string, Promise<FontPart>>();

function load({ family, url }: { family: string; url: string }): Promise<FontPart> {
  let part = loading.get(family);
  if (!part) {
    part = (async () => {
      const [{ parse }, response] = await Promise.all([import('opentype.js'), fetch(url)]);
      if (!response.ok) throw new Error(`The font could not be loaded (${response.status}).`);
      const woff = await response.arrayBuffer();
      const file = await sfntOf(woff);
      document.fonts.add(await new FontFace(family, file).load());
      return { family, file, woff, font: parse(file) };
    })();
    loading.set(family, part);
    // A failed download is not cached.
    part.catch(() => loading.delete(family));
  }
  return part;
}

const has = ({ font }: FontPart, character: string): boolean => font.charToGlyphIndex(character) > 0;

/** The parts of the font that some texts need, that of Latin first; others are loaded for other scripts only. */
export async function fontsFor(texts: readonly string[]): Promise<FontPart[]> {
  const main = await load(LATIN);
  const rest = new Set(Array.from(texts.join('')).filter((character) => !has(main, character)));
  if (rest.size === 0) return [main];
  const further = await Promise.all(OTHERS.map(load));
  return [main, ...further.filter((part) => [...rest].some((character) => has(part, character)))];
}

/** A piece of a text in one part of the font; without one where no part has its characters. */
export type Piece = { text: string; part: FontPart | undefined };

/** A text in pieces. */
export function piecesOf(text: string, parts: readonly FontPart[]): Piece[] {
  const pieces: Piece[] = [];
  for (const character of text) {
    const part = parts.find((candidate) => has(candidate, character));
    const last = pieces.at(-1);
    if (last && last.part === part) last.text += character;
    else pieces.push({ text: character, part });
  }
  return pieces;
}
