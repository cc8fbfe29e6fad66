/** What is used of a library that has no types of its own. */
declare module 'opentype.js' {
  export type Command = { type: string } & Partial<Record<'x1' | 'y1' | 'x2' | 'y2' | 'x' | 'y', number>>;
  export type Glyph = {
    index: number;
    advanceWidth: number;
    getPath: (x: number, y: number, size: number) => { commands: readonly Command[] };
  };
  export type Font = {
    unitsPerEm: number;
    charToGlyph: (character: string) => Glyph;
    charToGlyphIndex: (character: string) => number;
  };
  export function parse(file: ArrayBuffer): Font;
}
