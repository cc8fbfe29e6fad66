/** What the card of changes says of a metric. */

import type { MetricChange } from '@/api/runResources';
import { formatNumber } from '@/lib/format';

/** Changes of fewer robust standard deviations are within what the values did before. */
const SMALL = 2;
const MAX_FACTOR = 1000;

/** Changes of a smaller share of the median are not worth a look, however little the values varied before. */
const SMALL_SHARE = 0.05;

/** Whether the metric did not change more than it varied before, or hardly at all. */
export const isSmall = (change: MetricChange): boolean => {
  const { before, inside, score, was_constant, becomes_not_finite } = change;
  if (becomes_not_finite || was_constant) return false;
  if (Math.abs(score ?? 0) < SMALL) return true;
  return before !== null && inside !== null && Math.abs(inside - before) < SMALL_SHARE * Math.abs(before);
};

/** How much it changed, in words: by a factor where both medians have one sign, else by its score. */
export function howMuch({
  before,
  inside,
  score,
  was_constant,
  becomes_not_finite,
}: Pick<MetricChange, 'before' | 'inside' | 'score' | 'was_constant' | 'becomes_not_finite'>): string {
  if (becomes_not_finite) return 'not finite any more';
  if (was_constant) return 'was constant';
  const factor = before && inside ? inside / before : 0;
  if (factor >= 2 && factor <= MAX_FACTOR) return `× ${formatFactor(factor)}`;
  if (factor > 0 && factor <= 0.5 && factor >= 1 / MAX_FACTOR) return `÷ ${formatFactor(1 / factor)}`;
  return `${(score ?? 0) > 0 ? '+' : '−'}${formatFactor(Math.abs(score ?? 0))} σ`;
}

const formatFactor = (value: number): string => formatNumber(Number(value.toPrecision(2)));
