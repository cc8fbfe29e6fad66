import type { Run } from '@/api/runs';
import { formatDuration, formatWhole } from '@/lib/format';
import { hasEnded } from '@/lib/states';

export type ActionId = 'stop' | 'kill' | 'resume' | 'archive' | 'unarchive' | 'delete';

export type Action = {
  id: ActionId;
  /** The words on the button that asks and on the one that does it. */
  label: string;
  /** What will happen, exactly. */
  says: string;
  danger: boolean;
};

function checkpointInterval_s(run: Run): number | null {
  const config = run.spec.config as Record<string, unknown> | undefined;
  const interval = config?.checkpoint_interval_s;
  return typeof interval === 'number' ? interval : null;
}

/** What may be lost when the run is ended at once. */
function loss(run: Run): string {
  const interval = checkpointInterval_s(run);
  return interval === null
    ? 'loses what came after its last checkpoint'
    : `loses up to ${formatDuration(interval)}`;
}

function stopping(run: Run): Action[] {
  const kill: Action = {
    id: 'kill',
    label: `Kill now (${loss(run)})`,
    says:
      'Its processes are ended at once, without a last checkpoint. Training since the newest checkpoint is lost; ' +
      'everything up to there is kept, and the run can be resumed from it.',
    danger: true,
  };
  if (run.state === 'stopping') return run.stop_requested === 'kill' ? [] : [kill];
  const stop: Action = {
    id: 'stop',
    label: 'Stop and keep a checkpoint',
    says:
      'It finishes the update it is in, saves a checkpoint and ends. Nothing is lost, and it can be resumed from ' +
      'exactly there.',
    danger: false,
  };
  return [stop, kill];
}

const RESUME: Action = {
  id: 'resume',
  label: 'Resume',
  says: 'It goes back into the queue and goes on from its newest checkpoint as soon as a host has a free slot.',
  danger: false,
};

const UNQUEUE: Action = {
  id: 'stop',
  label: 'Take out of the queue',
  says: 'It is not started. It stays in the list as stopped and can be resumed.',
  danger: false,
};

/** What may be done to a run in the state it is in. */
export function actionsFor(run: Run): Action[] {
  if (run.state === 'starting' || run.state === 'running' || run.state === 'stopping') return stopping(run);
  const remove: Action = {
    id: 'delete',
    label: 'Delete',
    says:
      `Its settings, its curves, its log, its episodes with their videos and all its checkpoints are deleted` +
      `${run.agent_steps > 0 ? `, ${formatWhole(run.agent_steps)} agent steps of training with them` : ''}. ` +
      'This cannot be undone.',
    danger: true,
  };
  if (!hasEnded(run.state)) return [UNQUEUE, remove];
  const archive: Action = run.archived
    ? { id: 'unarchive', label: 'Fetch back', says: 'It is shown among the runs again.', danger: false }
    : {
        id: 'archive',
        label: 'Archive',
        says: 'It is left out of the list of runs. Nothing is deleted, and it can be fetched back.',
        danger: false,
      };
  return [RESUME, archive, remove];
}
