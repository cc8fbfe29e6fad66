/** Okabe and Ito's colours, readable by people with any colour vision; the same as the service's figures. */
const COLOURS = {
  light: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#6b5d00', '#333333'],
  dark: ['#3f8fdc', '#e8743b', '#2cc79b', '#e29cc4', '#e69f00', '#8fd3fa', '#f0e442', '#d6d6d6'],
} as const;

type Scheme = keyof typeof COLOURS;

/** FNV-1a of an id, as the service does it. */
function colourIndex(id: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(id)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}

/** Of lines of one colour, as the service's figures draw them; lengths are those of `stroke-dasharray`. */
const DASHES = [undefined, '5 3', '2 2', '5 2 1 2'] as const;

export type Style = { colour: string; dash: string | undefined };

/**
 * A colour and a dash for each run or group, as the service does it: the same on every chart, unless one
 * before it has that colour; then the next that is free.
 */
export function styles(ids: readonly string[], scheme: Scheme): Map<string, Style> {
  const palette = COLOURS[scheme];
  const taken = palette.map(() => 0);
  const found = new Map<string, Style>();
  for (const id of new Set(ids)) {
    const own = colourIndex(id);
    const times = Math.min(...taken);
    const free = palette.findIndex((_, after) => taken[(own + after) % palette.length] === times);
    const index = (own + free) % palette.length;
    taken[index] = times + 1;
    found.set(id, { colour: palette[index] ?? palette[0], dash: DASHES[times % DASHES.length] });
  }
  return found;
}
