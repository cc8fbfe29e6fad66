import type { ResumeRequest, Run } from '@/api/runs';
import { formatInteger } from '@/lib/format';

export type Annealing = NonNullable<ResumeRequest['annealing']>;

const percent = (fraction: number): string => `${Math.round(100 * Math.max(0, fraction))} %`;

/** What a resume up to `bound` agent steps may do to an annealed learning rate; null if there is no choice. */
export function annealingChange(run: Run, bound: number) {
  const spec = run.spec as {
    config?: { learning_rate_schedule?: string };
    annealing_agent_steps?: number | null;
    stop?: { agent_steps?: number | null };
  };
  const over = spec.annealing_agent_steps ?? spec.stop?.agent_steps;
  if (spec.config?.learning_rate_schedule !== 'linear' || over == null || over === bound) return null;
  const before = percent(1 - run.agent_steps / over);
  const after = percent(1 - run.agent_steps / bound);
  return {
    over,
    extended: `It changes immediately from ${before} to ${after} of its initial value.`,
    kept:
      over < bound
        ? `It continues from ${before}; from ${formatInteger(over)} agent steps on it is 0, and nothing is learned.`
        : `It continues from ${before}.`,
  };
}
