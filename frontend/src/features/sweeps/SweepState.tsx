import type { Sweep } from '@/api/sweeps';
import { StateBadge } from '@/components/run/StateBadge';
import { formatInteger, plural } from '@/lib/format';
import { STATES } from '@/lib/run';

const MEANINGS: Record<Sweep['state'], string> = {
  running: 'Its runs are started in rounds.',
  finished: 'No further run will be started.',
  stopped: 'Stopped by a user. Retry continues it.',
};

/** Whether some of its runs are queued, and none trains. */
const isWaiting = (runs: Sweep['runs']): boolean =>
  (runs.queued ?? 0) > 0 && !['starting', 'running', 'stopping'].some((state) => (runs[state] ?? 0) > 0);

/** A sweep's state, with its meaning and reason in a tooltip. */
export function SweepState({ sweep: { state, state_reason, runs } }: { sweep: Sweep }) {
  const reason = `Last change: ${state_reason}.`;
  if (state === 'running' && isWaiting(runs))
    return (
      <StateBadge state="queued" meaning="All its runs wait for a host with a free slot." reason={reason} />
    );
  return <StateBadge state={state} meaning={MEANINGS[state]} reason={reason} />;
}

/** Its runs by state, such as "3 running, 12 finished". */
export function runsByState({ runs }: Sweep): string {
  const counts = [...STATES, 'changed', 'deleted'].flatMap((state) => {
    const n = runs[state] ?? 0;
    return n > 0 ? `${formatInteger(n)} ${state}` : [];
  });
  return counts.join(', ') || 'none yet';
}

/** Such as "7 of 12 still racing". */
export function configurationCount({ n_configurations, n_active, spec, state }: Sweep): string {
  if (!spec.racing || n_active === n_configurations) return formatInteger(n_configurations);
  const kept = `${formatInteger(n_active)} of ${formatInteger(n_configurations)}`;
  return `${kept} ${state === 'running' ? 'still racing' : 'not eliminated'}`;
}

/** How many of its runs have ended, of how many at most. */
export function progressOf(sweep: Sweep): { fraction: number; text: string } {
  const { runs, spec, state, n_configurations, n_not_needed } = sweep;
  const n_started = Object.values(runs).reduce((sum, n) => sum + n, 0);
  // Those that scores choose come one by one.
  const n_wanted = Math.max(n_configurations, spec.n_configurations ?? 0);
  const n_known = spec.sampler === 'tpe' && state === 'running' ? n_wanted : n_configurations;
  const n_planned = Math.min(n_known * spec.max_seeds - n_not_needed, spec.budget?.runs ?? Infinity);
  const n_ended = ['finished', 'stopped', 'failed', 'changed', 'deleted'].reduce(
    (sum, ended) => sum + (runs[ended] ?? 0),
    0,
  );
  const n = Math.max(n_started, state === 'running' ? n_planned : 0);
  return {
    fraction: n === 0 ? 0 : n_ended / n,
    text:
      state === 'running'
        ? `${formatInteger(n_ended)} of at most ${plural(n, 'run')}`
        : plural(n_ended, 'run'),
  };
}
