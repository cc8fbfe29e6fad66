/** What the states of a study mean, and how far it is. */
import type { Study } from '@/api/studies';
import { formatInteger, plural } from '@/lib/format';

const STUDY_MEANINGS: Record<Study['state'], string> = {
  running: 'Its runs are started by draw: first one of each arm on each environment.',
  finished: 'No further run will be started.',
  stopped: 'Stopped by a user. Retry continues it.',
};

const TRAINING = ['starting', 'running', 'stopping', 'lost'] as const;
const FAILED = ['failed', 'stopped', 'deleted', 'changed', 'invalid'] as const;

type Runs = Readonly<Record<string, number>>;

const sum = (runs: Runs, states: readonly string[]): number =>
  states.reduce((total, state) => total + (runs[state] ?? 0), 0);

/** The cells of a study, or of an arm, by how far their runs are. */
export function partsOf(runs: Runs) {
  const n = Object.values(runs).reduce((total, runsInState) => total + runsInState, 0);
  const training = sum(runs, TRAINING);
  return {
    n,
    finished: runs.finished ?? 0,
    training,
    active: training + (runs.queued ?? 0),
    failed: sum(runs, FAILED),
  };
}

/** Whether it is running, and all runs that it has left wait for a host. */
export const isQueued = ({ state, runs }: Pick<Study, 'state' | 'runs'>): boolean =>
  state === 'running' && partsOf(runs).training === 0 && (runs.queued ?? 0) + (runs.waiting ?? 0) > 0;

/** The state to show, and what it means. */
export const shownState = (study: Pick<Study, 'state' | 'runs'>) =>
  isQueued(study)
    ? ({ state: 'queued', meaning: 'None of its runs trains: they wait for a host.' } as const)
    : { state: study.state, meaning: STUDY_MEANINGS[study.state] };

/** Such as "12 of 24 runs". */
export function progressText({ runs, n_runs }: Pick<Study, 'runs' | 'n_runs'>): string {
  return `${formatInteger(runs.finished ?? 0)} of ${formatInteger(n_runs)} runs`;
}

/** The state of a cell: nothing waits for a study that starts no further run. */
export const wordOf = (state: string, isRunning: boolean): string =>
  state === 'waiting' && !isRunning ? 'not started' : state;

/** Such as "3 running, 12 finished, 9 waiting". */
export function runsText(runs: Runs, isRunning: boolean): string {
  const named = Object.entries(runs).filter(([, count]) => count > 0);
  const texts = named.map(([state, count]) => `${formatInteger(count)} ${wordOf(state, isRunning)}`);
  return texts.join(', ') || 'none';
}

/** Why a figure or a table has no run. */
export function nothingText({ runs, state }: Pick<Study, 'runs' | 'state'>, what: string): string {
  if (state === 'running') return `No run has a score yet: the ${what} fills in as runs finish.`;
  const { failed } = partsOf(runs);
  const why =
    failed > 0 ? `: ${plural(failed, 'run')} did not finish as planned. Retry queues them again` : '';
  return `No run has a score${why}.`;
}
