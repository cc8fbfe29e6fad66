/** Lists of names in one text, such as a URL's parameter: separated by commas, which names may contain too. */

const encoded = (name: string): string => name.replaceAll('%', '%25').replaceAll(',', '%2C');
const decoded = (part: string): string => part.replaceAll('%2C', ',').replaceAll('%25', '%');

export const joinNames = (names: readonly string[]): string => names.map(encoded).join(',');

export const splitNames = (text: string): string[] => text.split(',').map(decoded);

const NUMBER = /(-?\d+(?:\.\d+)?(?:e-?\d+)?)([kMG]?)(?![\w.])/u;
const UNITS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9 };

/** The order of names, in which numbers stand by their values: `lr 2e-4` before `lr 0.001`, `9k` before `1M`. */
export function compareNames(a: string, b: string): number {
  const [left, right] = [a, b].map((name) => name.split(NUMBER));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at += 3) {
    const order =
      (left?.[at] ?? '').localeCompare(right?.[at] ?? '') || valueAt(left, at) - valueAt(right, at);
    if (order !== 0 && !Number.isNaN(order)) return order;
  }
  return 0;
}

/** The number after the text at this place; without one, below every other. */
function valueAt(parts: readonly string[] | undefined, at: number): number {
  const digits = parts?.[at + 1];
  return digits === undefined ? -Infinity : Number(digits) * (UNITS[parts?.[at + 2] ?? ''] ?? 1);
}
