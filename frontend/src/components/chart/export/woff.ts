/** A WOFF 1.0 file as the TrueType or OpenType file that it contains, uncompressed, for libraries that read no WOFF. */

const HEADER_BYTES = 44;
const ENTRY_BYTES = 20;
const SIGNATURE = 0x774f4646; // wOFF

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const padded = (length: number): number => (length + 3) & ~3;

/** The font of a WOFF file (W3C Recommendation of 2012, sections 3 to 5). */
export async function sfntOf(woff: ArrayBuffer): Promise<ArrayBuffer> {
  const from = new DataView(woff);
  if (from.byteLength < HEADER_BYTES || from.getUint32(0) !== SIGNATURE) throw new Error('not a WOFF file');
  const n = from.getUint16(12);
  const tables = await Promise.all(
    Array.from({ length: n }, async (_, at) => {
      const entry = HEADER_BYTES + at * ENTRY_BYTES;
      const [tag, offset, stored, length, checksum] = [0, 4, 8, 12, 16].map((byte) =>
        from.getUint32(entry + byte),
      ) as [number, number, number, number, number];
      const bytes = new Uint8Array(woff, offset, stored);
      return { tag, checksum, length, data: stored < length ? await inflated(bytes) : bytes };
    }),
  );
  const start = 12 + 16 * n;
  const sfnt = new ArrayBuffer(tables.reduce((sum, { length }) => sum + padded(length), start));
  const to = new DataView(sfnt);
  const power = Math.floor(Math.log2(n));
  to.setUint32(0, from.getUint32(4));
  to.setUint16(4, n);
  to.setUint16(6, 2 ** power * 16);
  to.setUint16(8, power);
  to.setUint16(10, n * 16 - 2 ** power * 16);
  let offset = start;
  tables.forEach(({ tag, checksum, length, data }, at) => {
    [tag, checksum, offset, length].forEach((value, field) => to.setUint32(12 + 16 * at + 4 * field, value));
    new Uint8Array(sfnt, offset, length).set(data);
    offset += padded(length);
  });
  return sfnt;
}
