import type { Range } from '@/api/series';
import type { Figure, Trace } from '@/api/tails';
import { formatInteger } from '@/lib/format';

const KINDS = [
  ['nan', 'NaN'],
  ['inf', 'Inf'],
  ['neg_inf', '\u2212Inf'],
] as const;

/** The corners of a stretch of values that are not finite; its counts stand at the first corner. */
const CORNERS = 5;

/** Whether the stretch that starts at a corner is in view. */
function isInView({ x }: Trace, at: number, zoom: Range | null): boolean {
  const ends = Array.from(x?.slice(at + 1, at + CORNERS) ?? [], Number);
  return !zoom || (Math.max(...ends) >= zoom[0] && Math.min(...ends) <= zoom[1]);
}

/** How many values of a figure, in a range of x, are not finite, as `299 NaN, 1 Inf`; empty for none. */
export function notFinite({ data }: Figure, zoom: Range | null = null): string {
  const gaps = (data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'not_finite');
  return KINDS.flatMap(([name, kind]) => {
    const total = gaps.reduce((sum, gap) => {
      const shown = gap.meta?.[name]?.filter((n, at) => n > 0 && isInView(gap, at, zoom));
      return sum + (shown?.reduce((a, b) => a + b, 0) ?? 0);
    }, 0);
    return total > 0 ? [`${formatInteger(total)} ${kind}`] : [];
  }).join(', ');
}

/** Why a figure with points has no line: `All 3,000 values are NaN`; empty where it has one. */
export function withoutLine(figure: Figure): string {
  const lines = (figure.data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'line');
  const counts = notFinite(figure);
  if (!counts || lines.some(({ y }) => (y ?? []).some((value) => Number.isFinite(value)))) return '';
  if (figure.n_total === 1) return `The only value is ${counts.replace('1 ', '')}.`;
  const isOneKind = !counts.includes(', ');
  return isOneKind
    ? `All ${counts.replace(/ (\S+)$/, ' values are $1')}.`
    : `None of the values is finite: ${counts}.`;
}
