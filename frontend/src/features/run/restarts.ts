import type { RunDetail } from '@/api/runs';

type Attempt = RunDetail['attempts'][number];

export type Restart = {
  /** The attempt that ended. */
  attempt: Attempt;
  cause: string;
  /** How often the run was restarted after a crash or a lost host. */
  count: number;
  /** Agent steps from which the next attempt resumed; null before it has started. */
  resumedFrom: number | null;
};

const QUEUED = 'queued: ';
/** Before attempts recorded the cause. */
const LOST = 'its host no longer responded';
const SHUTDOWN = 'is shutting down';

/** Whether an attempt ended without a request: its engine died, or its host stopped renewing the lease. */
const died = ({ outcome }: Attempt): boolean => {
  if (!outcome?.startsWith(QUEUED)) return false;
  return !outcome.endsWith(SHUTDOWN);
};

/** The last restart of a run that was not requested; null if there was none. */
export function lastRestart({ attempts }: Pick<RunDetail, 'attempts'>): Restart | null {
  const crashed = attempts.filter(died);
  const attempt = crashed.at(-1);
  if (!attempt) return null;
  const next = attempts.find(({ number }) => number > attempt.number);
  return {
    attempt,
    // The rest of the reason states what happens next.
    cause:
      (attempt.outcome ?? '').slice(QUEUED.length).replace(/(^|: )(to|it will) resume from .*$/, '') || LOST,
    count: crashed.length,
    resumedFrom: next ? next.resumed_from_agent_steps : null,
  };
}

type Kept = { curves: boolean; episodes: boolean; checkpoints: boolean };

/** What a failed run still has: "Its curves and episodes are kept." */
export function keptText(kept: Kept): string {
  const [first, ...rest] = (['curves', 'episodes', 'checkpoints'] as const).filter((kind) => kept[kind]);
  if (first === undefined) return 'It failed before it recorded anything.';
  const last = rest.pop();
  const all = last === undefined ? first : `${[first, ...rest].join(', ')} and ${last}`;
  return `Its ${all} are kept.`;
}
