import type { Figure, Trace } from '@/api/tails';
import { formatInteger } from '@/lib/format';

const KINDS = [
  ['nan', 'NaN'],
  ['inf', 'Inf'],
  ['neg_inf', '\u2212Inf'],
] as const;

/** How many values of a figure are not finite, as `299 NaN, 1 Inf`; empty for none. */
export function notFinite({ data }: Figure): string {
  const gaps = (data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'not_finite');
  return KINDS.flatMap(([name, kind]) => {
    const total = gaps.reduce((sum, { meta }) => sum + (meta?.[name]?.reduce((a, b) => a + b, 0) ?? 0), 0);
    return total > 0 ? [`${formatInteger(total)} ${kind}`] : [];
  }).join(', ');
}

/** Why a figure with points has no line: `All 3,000 values are NaN`; empty where it has one. */
export function withoutLine(figure: Figure): string {
  const lines = (figure.data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'line');
  const counts = notFinite(figure);
  if (!counts || lines.some(({ y }) => (y ?? []).some((value) => Number.isFinite(value)))) return '';
  const isOneKind = !counts.includes(', ');
  return isOneKind
    ? `All ${counts.replace(/ (\S+)$/, ' values are $1')}.`
    : `None of the values is finite: ${counts}.`;
}
