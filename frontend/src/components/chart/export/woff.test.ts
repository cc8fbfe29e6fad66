import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { sfntOf } from './woff';

const FILE = 'node_modules/@fontsource/inter/files/inter-latin-400-normal.woff';

it('sfntOf unpacks the tables of a WOFF file', async () => {
  const sfnt = new DataView(await sfntOf(Uint8Array.from(readFileSync(FILE)).buffer));
  expect(sfnt.getUint32(0)).toBe(0x00010000); // TrueType
  const n = sfnt.getUint16(4);
  const tables = Array.from({ length: n }, (_, at) => {
    const entry = 12 + 16 * at;
    const name = String.fromCharCode(...[0, 1, 2, 3].map((byte) => sfnt.getUint8(entry + byte)));
    return [name, sfnt.getUint32(entry + 8), sfnt.getUint32(entry + 12)] as const;
  });
  expect(tables.map(([name]) => name)).toEqual(
    expect.arrayContaining(['cmap', 'glyf', 'head', 'hmtx', 'loca']),
  );
  const [, head = 0] = tables.find(([name]) => name === 'head') ?? [];
  expect(sfnt.getUint32(head + 12)).toBe(0x5f0f3cf5); // the magic number of every font
  for (const [, offset, length] of tables) expect(offset + length).toBeLessThanOrEqual(sfnt.byteLength);
});

it('sfntOf refuses what is no WOFF file', async () => {
  await expect(sfntOf(new ArrayBuffer(100))).rejects.toThrow('not a WOFF file');
});
