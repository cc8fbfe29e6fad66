/** Okabe and Ito's colours, readable by people with any colour vision; the same as the service's figures. */
const COLOURS = {
  light: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b88700', '#56b4e9', '#7a6a00', '#333333'],
  dark: ['#56b4e9', '#e69f00', '#2cc79b', '#e29cc4', '#f0e442', '#5a9fd4', '#e8743b', '#cccccc'],
} as const;

type Scheme = keyof typeof COLOURS;

/** FNV-1a of an id, as the service does it: a run keeps its colour whatever is shown beside it. */
function colourIndex(id: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(id)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value % COLOURS.light.length;
}

/** Of a run, or of a group of seeds, by its id. */
export const colourOf = (id: string, scheme: Scheme): string =>
  COLOURS[scheme][colourIndex(id)] ?? COLOURS[scheme][0];
