import type { Branch } from '@/api/branches';
import { formatInteger, formatScore } from '@/lib/format';

type Outcome = NonNullable<Branch['outcome']>;

/** What the agent's expectation is called. */
export const valueName = ({ policy, first_action }: Pick<Branch, 'policy' | 'first_action'>): string =>
  !policy.action_values ? 'V' : first_action === null ? 'max Q' : 'Q';

/** Differences below this many standard errors may be chance. */
const CLEAR = 2;

/** What the agent expected beside what came, in a sentence. */
export function verdict(
  branch: Pick<Branch, 'policy' | 'first_action'>,
  { value, discounted_return: { mean, standard_error: error } }: Outcome,
): string {
  const name = valueName(branch);
  if (value === null || mean === null) return `${name} or the returns are not finite.`;
  const beside = `${name} ${formatScore(value)} beside a mean discounted return of ${formatScore(mean)}`;
  if (error === null) return `${beside}.`;
  const spread = `${beside} ± ${formatScore(error)}`;
  const away = Math.abs(value - mean);
  if (away <= CLEAR * error || away === 0) return `${spread}: no clear difference.`;
  const size = error > 0 ? ` by ${formatScore(away / error)} standard errors` : '';
  return `${spread}: ${name} is too ${value > mean ? 'high' : 'low'}${size}.`;
}

/** Where a branch begins and how it is played, such as "Decision 240, 32 × 500". */
export const shortName = ({ decision, n_continuations, horizon }: Branch): string =>
  `Decision ${formatInteger(decision)}, ${formatInteger(n_continuations)} × ${formatInteger(horizon)}`;
