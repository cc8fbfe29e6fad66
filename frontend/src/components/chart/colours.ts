/** Okabe and Ito's colours, readable by people with any colour vision; the same as the service's figures. */
const COLOURS = {
  light: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b88700', '#56b4e9', '#7a6a00', '#333333'],
  dark: ['#56b4e9', '#e69f00', '#2cc79b', '#e29cc4', '#f0e442', '#5a9fd4', '#e8743b', '#cccccc'],
} as const;

type Scheme = keyof typeof COLOURS;

/** FNV-1a of an id, as the service does it. */
function colourIndex(id: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(id)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value % COLOURS.light.length;
}

/** Of lines of one colour, as the service's figures draw them; lengths are those of `stroke-dasharray`. */
const DASHES = [undefined, '5 3', '2 2', '5 2 1 2'] as const;

export type Style = { colour: string; dash: string | undefined };

/** A colour and a dash for each run, as the service does it: a run keeps its colour on every chart. */
export function runStyles(ids: readonly string[], scheme: Scheme): Map<string, Style> {
  const taken = new Map<number, number>();
  const found = new Map<string, Style>();
  for (const id of new Set(ids)) {
    const index = colourIndex(id);
    const before = taken.get(index) ?? 0;
    taken.set(index, before + 1);
    found.set(id, {
      colour: COLOURS[scheme][index] ?? COLOURS[scheme][0],
      dash: DASHES[before % DASHES.length],
    });
  }
  return found;
}

/** A colour of its own for each of a few groups of seeds, as the service does it. */
export function groupColours(ids: readonly string[], scheme: Scheme): Map<string, string> {
  const palette = COLOURS[scheme];
  const found = new Map<string, string>();
  let free: number[] = [];
  for (const id of [...new Set(ids)].toSorted()) {
    if (free.length === 0) free = palette.map((_, index) => index);
    const distance = (index: number): number => (index - colourIndex(id) + palette.length) % palette.length;
    const index = free.reduce((best, each) => (distance(each) < distance(best) ? each : best));
    free = free.filter((each) => each !== index);
    found.set(id, palette[index] ?? palette[0]);
  }
  return found;
}
