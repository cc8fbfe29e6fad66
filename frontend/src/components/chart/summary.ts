import type { Figure, Trace } from '@/api/tails';
import { formatX, type Range } from '@/api/series';
import { formatInteger, formatNumber, plural } from '@/lib/format';
import { notFinite, withoutLine } from './gaps';

/** The points of a trace's buckets in a range of x; several buckets may be merged into one. */
function pointsInView({ x, meta }: Trace, [from, to]: Range): number {
  const bucket = meta?.bucket ?? new Float64Array();
  let total = 0;
  for (const [index, at] of (x ?? []).entries()) {
    const size = (bucket[index] ?? 0) - (bucket[index - 1] ?? -1);
    if (typeof at === 'number' && at >= from && at <= to) total += index === 0 ? 1 : size;
  }
  return total;
}

/** The number of points drawn, what is not finite, and what the bands are; empty without any series. */
export function summaryOf(figure: Figure, zoom: Range | null, log: boolean): string {
  const lines = (figure.data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'line');
  if (figure.n_total === 0) return '';
  const omits =
    log && lines.some(({ y }) => (y ?? []).some((value) => typeof value === 'number' && value <= 0));
  return [
    (zoom ? '' : allAtOnePlace(figure, lines)) ||
      shownOfTotal(figure.n_total, zoom ? nInView(lines, zoom) : figure.n_shown),
    ...[notFinite(figure, zoom)].filter(Boolean),
    ...(omits ? ['values ≤ 0 are not shown on a log scale'] : []),
    // Around a single point, or none, there is no band.
    ...(figure.n_total > 1 && !withoutLine(figure) ? figure.bands : []),
  ].join('; ');
}

/** "30,000 values, all at Agent steps 5: 0 to 29,999" for several values that are drawn as one dot. */
function allAtOnePlace({ n_total, scales, x: axis }: Figure, lines: readonly Trace[]): string {
  const [line, ...others] = lines;
  const [place, ...further] = new Set(line?.x ?? []);
  if (n_total < 2 || others.length > 0 || further.length > 0 || typeof place !== 'number' || !axis) return '';
  const { low, high } = line?.meta ?? {};
  // With windows these are the standard deviation around their mean.
  const [least, most] = scales.length === 0 ? [low?.[0], high?.[0]] : [];
  const range = isNumber(least) && isNumber(most) ? `: ${formatNumber(least)} to ${formatNumber(most)}` : '';
  return `${plural(n_total, 'value')}, all at ${formatX(axis, place)}${range}`;
}

const isNumber = (value: number | undefined): value is number => Number.isFinite(value);

/** The number of points in view; more are fetched. The seeds of a group have the same x, and count once. */
function nInView(lines: readonly Trace[], zoom: Range): number {
  const apart = new Map(
    lines.map((line, at) => [line.meta?.group ? `${line.meta.group} ${line.meta.source}` : at, line]),
  );
  return [...apart.values()].reduce((sum, line) => sum + pointsInView(line, zoom), 0);
}

/** "1,000 of 123,456 points" for a downsampled chart. */
const shownOfTotal = (total: number, shown: number): string =>
  shown < total ? `${formatInteger(shown)} of ${plural(total, 'point')}` : plural(total, 'point');
