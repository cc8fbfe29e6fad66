/** Digits in groups of three, each set off by the same sign. */
const GROUPED = /^[+-]?[1-9]\d{0,2}([,_ \u00a0])\d{3}(?:\1\d{3})*(?:\.\d*)?(?:e[+-]?\d+)?$/i;

/** A typed number; its digits may stand in groups of three, and 1e6 is understood. NaN where it is none. */
export function parseNumber(raw: string): number {
  const typed = raw.trim().replaceAll('\u2212', '-');
  if (typed === '') return NaN;
  // A comma that sets off no group may be a decimal comma: it is refused, never left out.
  return Number(GROUPED.test(typed) ? typed.replace(/[,_ \u00a0]/g, '') : typed);
}
