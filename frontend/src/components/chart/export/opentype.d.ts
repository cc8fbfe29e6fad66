/** What is used of a library that has no types of its own. */
declare module 'opentype.js' {
  export type Glyph = { index: number; advanceWidth: number };
  export type Font = {
    unitsPerEm: number;
    charToGlyph: (character: string) => Glyph;
    charToGlyphIndex: (character: string) => number;
  };
  export function parse(file: ArrayBuffer): Font;
}
