import type { Branch } from '@/api/branches';
import { formatInteger, formatNumber, formatScore, plural } from '@/lib/format';

type Outcome = NonNullable<Branch['outcome']>;

/** What the agent's expectation is called. */
export const valueName = ({ policy, first_action }: Pick<Branch, 'policy' | 'first_action'>): string =>
  !policy.action_values ? 'V' : first_action === null ? 'max Q' : 'Q';

/** From fewer continuations nothing is concluded: their returns may be alike by chance. */
const MIN_CONTINUATIONS = 8;

/** The half width of an interval, or a standard error; a small one is not 0.00. */
export const formatError = (value: number): string =>
  value > 0 && value < 0.005 ? formatNumber(value) : formatScore(value);

/** The agent's expectation beside the mean return of the continuations, in a sentence. */
export function verdict(
  branch: Pick<Branch, 'policy' | 'first_action'>,
  { value, discounted_return: { mean, half_interval: half }, continuations }: Outcome,
): string {
  const name = valueName(branch);
  if (value === null || mean === null) return `${name} or the returns are not finite.`;
  const n = continuations.length;
  const interval = half === null ? '' : ` (95 % interval ±${formatError(half)})`;
  const beside = `${name} ${formatScore(value)} beside a mean discounted return of ${formatScore(mean)}${interval}`;
  if (half === null || n < MIN_CONTINUATIONS)
    return `${beside}: too few to compare (${plural(n, 'continuation', 'continuations')}, at least ${MIN_CONTINUATIONS} are needed).`;
  const of = ` in ${plural(n, 'continuation', 'continuations')}`;
  if (Math.abs(value - mean) <= half) return `${beside}${of}: no clear difference.`;
  return `${beside}${of}: ${name} is too ${value > mean ? 'high' : 'low'}.`;
}

/** Where a branch begins and how it is played, such as "Decision 240, 32 × 500". Decisions are counted from 1, as
 *  everywhere in a replay; the API counts them from 0. */
export const shortName = ({ decision, n_continuations, horizon }: Branch): string =>
  `Decision ${formatInteger(decision + 1)}, ${formatInteger(n_continuations)} × ${formatInteger(horizon)}`;
