import type { Estimate, GroupStatistics } from '@/api/comparisons';
import { DASH } from '@/lib/format';

/** "12.3 [11.0, 14.2]", or without an interval where there is none. */
export function formatEstimate(estimate: Estimate | null, format: (value: number) => string): string {
  if (estimate?.value == null) return DASH;
  const { value, low, high } = estimate;
  if (low === null && high === null) return format(value);
  // An upper end that is missing lies beyond everything that was seen.
  return `${format(value)} [${low === null ? DASH : format(low)}, ${high === null ? '∞' : format(high)}]`;
}

/** The scale on which the intervals of groups of one world are drawn. */
export function scaleOf(groups: readonly GroupStatistics[]): [number, number] {
  const ends = groups.flatMap(({ iqm }) => [iqm?.value, iqm?.low, iqm?.high]).filter((end) => end != null);
  return [Math.min(...ends), Math.max(...ends)];
}

/** What an interval of P(A beats B) allows one to say. */
export function verdict({ low, high }: Estimate): string {
  if (low === null || high === null) return 'one run each: nobody knows';
  if (low > 0.5) return 'better, 95 % sure';
  if (high < 0.5) return 'worse, 95 % sure';
  return 'may be chance: more seeds would tell';
}
