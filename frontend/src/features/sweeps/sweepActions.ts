/** The actions on a sweep, and what they do. */
import type { Sweep, SweepDetail } from '@/api/sweeps';
import { plural } from '@/lib/format';

export type SweepAction = {
  id: 'stop' | 'retry' | 'delete';
  label: string;
  description: string;
  danger?: boolean;
  /** Why it cannot be done now. */
  unavailable?: string;
};

const ACTIVE = ['queued', 'starting', 'running', 'lost'] as const;
const RETRIED: readonly string[] = ['failed', 'stopped', 'deleted', 'changed'];

const count = ({ runs }: Sweep, states: readonly string[]): number =>
  states.reduce((sum, state) => sum + (runs[state] ?? 0), 0);

/** The number of runs that a retry queues again: not those of a configuration that is worse than another. */
const countRetried = ({ configurations }: SweepDetail): number =>
  configurations
    .filter(({ eliminated, n }) => eliminated === null || n === 0)
    .flatMap(({ runs }) => runs)
    .filter(({ state }) => RETRIED.includes(state)).length;

/** The actions that its state allows, and those that it will allow later, with the reason. */
export function actionsOf(sweep: SweepDetail): SweepAction[] {
  const isRunning = sweep.state === 'running';
  const n_retried = countRetried(sweep);
  const n_active = count(sweep, ACTIVE);
  const stop: SweepAction = {
    id: 'stop',
    label: 'Stop',
    description: `No further runs will be started. ${
      n_active > 0
        ? `${plural(n_active, 'queued or running run')} will be stopped; those that train keep a checkpoint. `
        : ''
    }Retry continues the sweep.`,
  };
  const retry: SweepAction = {
    id: 'retry',
    label: 'Retry',
    description: `${
      n_retried > 0
        ? `Starts ${plural(n_retried, 'failed, stopped, deleted or changed run')} again`
        : 'Starts the runs that are missing'
    } and continues the sweep.`,
  };
  return [
    ...(isRunning ? [stop] : []),
    ...(n_retried > 0 || sweep.state === 'stopped' ? [retry] : []),
    {
      id: 'delete',
      label: 'Delete',
      description: `Deletes the sweep and the results of its comparisons. Its ${plural(count(sweep, Object.keys(sweep.runs)), 'run')} will be kept.`,
      danger: true,
      ...(isRunning ? { unavailable: 'The sweep is running: stop it before you delete it.' } : {}),
    },
  ];
}
