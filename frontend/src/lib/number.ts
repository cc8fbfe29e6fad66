/** A typed number; digits may be grouped, and 1e6 is understood. NaN where it is none. */
export function parseNumber(raw: string): number {
  const plain = raw
    .trim()
    .replaceAll('\u2212', '-')
    .replace(/(?<=\d)[,_ \u00a0](?=\d)/g, '');
  return plain === '' ? NaN : Number(plain);
}
