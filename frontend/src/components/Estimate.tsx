import type { Estimate, GroupStatistics, Improvement } from '@/api/comparisons';
import { DASH, plural } from '@/lib/format';
import classes from './Estimate.module.css';

/** An estimate with its interval, such as "12.3 [11.0, 14.2]". */
export function formatEstimate(estimate: Estimate | null, format: (value: number) => string): string {
  if (estimate?.value == null) return DASH;
  const { value, low, high } = estimate;
  if (low === null && high === null) return format(value);
  // A missing upper end lies beyond all observed values.
  return `${format(value)} [${low === null ? DASH : format(low)}, ${high === null ? '∞' : format(high)}]`;
}

/** The common scale of the scores and intervals of several groups. */
export function scaleOf(groups: readonly GroupStatistics[]): [number, number] {
  const ends = groups
    .flatMap(({ median, runs }) => [...runs.map(({ score }) => score), median?.low, median?.high])
    .filter((end) => end != null);
  return [Math.min(...ends), Math.max(...ends)];
}

/** The symmetric scale of the differences between groups and their intervals. */
export function differenceScaleOf(improvements: readonly Improvement[]): [number, number] {
  const ends = improvements.flatMap(({ difference: { value, low, high } }) => [value, low, high]);
  const furthest = Math.max(...ends.map((end) => Math.abs(end ?? 0)));
  return [-furthest, furthest];
}

/** "p = 0.33", with three decimals below 0.1. */
export function formatP(p: number): string {
  if (p < 0.001) return 'p < 0.001';
  return `p = ${p.toFixed(p < 0.1 ? 3 : 2)}`;
}

/**
 * The result of the permutation test of a pair. Where its seeds are too few for the number of comparisons, nothing is
 * decided: that is no sign of equality.
 */
export function verdict(
  { a, b, better, p_adjusted, seeds_to_differ }: Improvement,
  groups: readonly GroupStatistics[],
  nComparisons: number,
): string {
  const p = formatP(p_adjusted);
  if (better !== null) return `${better === a ? 'A' : 'B'} better (${p})`;
  if (seeds_to_differ === null) return `no significant difference (${p})`;
  const ns = groups.filter(({ id }) => id === a || id === b).map(({ n }) => n);
  const [least, most] = [Math.min(...ns), Math.max(...ns)];
  const seeds = least === most ? plural(least, 'seed') : `${least} and ${most} seeds`;
  return `not decided: ${seeds} cannot reach p < 0.05 in ${plural(nComparisons, 'comparison')}; ${seeds_to_differ} seeds per group could`;
}

type Props = {
  estimate: Estimate;
  /** The values at the left and the right end. */
  from: number;
  to: number;
  colour: string;
  /** A reference value. */
  mark?: number;
  /** The scores of the seeds. */
  scores?: readonly number[];
};

/** An estimate among its seeds, as a dot if it has an interval; decorative, for the numbers are in the next cell. */
export function Interval({ estimate: { value, low, high }, from, to, colour, mark, scores = [] }: Props) {
  if (value === null) return null;
  const at = (number: number): string =>
    `${(to > from ? ((number - from) / (to - from)) * 100 : 50).toFixed(2)}%`;
  return (
    <svg className={classes.interval} aria-hidden="true">
      <line x1="0" x2="100%" y1="50%" y2="50%" stroke="var(--line)" />
      {mark !== undefined && (
        <line x1={at(mark)} x2={at(mark)} y1="0" y2="100%" stroke="var(--line-strong)" />
      )}
      {low !== null && high !== null && (
        <line x1={at(low)} x2={at(high)} y1="50%" y2="50%" stroke={colour} strokeWidth="3" />
      )}
      {scores.map((score, seed) => (
        <circle key={seed} cx={at(score)} cy="50%" r="3" fill="none" stroke={colour} strokeWidth="1.5" />
      ))}
      {(low !== null || scores.length === 0) && (
        <circle cx={at(value)} cy="50%" r="4" fill={colour} stroke="var(--panel)" strokeWidth="1.5" />
      )}
    </svg>
  );
}
