import type { Run } from '@/api/runs';
import { formatDuration, formatInteger } from '@/lib/format';
import { ELSEWHERE, hasEnded, runsHere, stepsOf } from '@/lib/run';

export type ActionId = 'stop' | 'kill' | 'resume' | 'archive' | 'unarchive' | 'delete';

export type Action = {
  id: ActionId;
  label: string;
  /** The labels of the dialog's buttons, where "Cancel" and the action's own label would be unclear. */
  confirm?: { action: string; dismiss: string };
  /** What exactly will happen. */
  description: string;
  danger: boolean;
  /** Why it is not possible with this run. */
  unavailable?: string;
};

function checkpointInterval_s(run: Run): number | null {
  const config = run.spec.config as Record<string, unknown> | undefined;
  const interval = config?.checkpoint_interval_s;
  return typeof interval === 'number' ? interval : null;
}

/** What a kill may lose. */
function loss(run: Run): string {
  const interval = checkpointInterval_s(run);
  return interval === null
    ? 'loses progress since its latest checkpoint'
    : `loses up to ${formatDuration(interval)}`;
}

/** Of a host's command. */
function commandStopActions(run: Run): Action[] {
  const kill: Action = {
    id: 'kill',
    label: 'Kill now',
    description: 'Ends its script and all that it has started immediately. What it has logged is kept.',
    danger: true,
  };
  if (run.state === 'stopping') return run.stop_requested === 'kill' ? [] : [kill];
  const stop: Action = {
    id: 'stop',
    label: 'Stop',
    description: 'Sends its script SIGTERM. After 20 seconds it is killed, with all that it has started.',
    danger: false,
  };
  return [stop, kill];
}

function stopActions(run: Run): Action[] {
  const kill: Action = {
    id: 'kill',
    label: `Kill now (${loss(run)})`,
    description:
      'Ends its processes immediately, without a final checkpoint. Training since the latest checkpoint is lost; ' +
      'everything before it is kept, and the run can be resumed from there.',
    danger: true,
  };
  if (run.state === 'stopping') return run.stop_requested === 'kill' ? [] : [kill];
  const stop: Action = {
    id: 'stop',
    label: 'Stop and keep a checkpoint',
    description:
      'Finishes the current update, saves a checkpoint and ends. Nothing is lost, and the run can be resumed from ' +
      'exactly this point.',
    danger: false,
  };
  return [stop, kill];
}

const RESUME: Action = {
  id: 'resume',
  label: 'Resume',
  description:
    'Puts the run back in the queue. It continues from its latest checkpoint as soon as a host has a free slot.',
  danger: false,
};

const START_AGAIN: Action = {
  id: 'resume',
  label: 'Start again',
  description:
    'Puts the run back in the queue. Its script starts anew, and what it has logged so far is set aside.',
  danger: false,
};

const NO_CHECKPOINT = 'The demo run has no checkpoint: clone it to train another one.';

const CANCEL: Action = {
  id: 'stop',
  label: 'Cancel',
  confirm: { action: 'Cancel run', dismiss: 'Keep in queue' },
  description: 'The run is not started. It stays in the list as stopped and can be resumed.',
  danger: false,
};

const STOP_LOST: Action = {
  id: 'stop',
  label: 'Stop',
  description:
    'It is not resumed by itself. It stays in the list as stopped, and can be resumed from its latest checkpoint.',
  danger: false,
};

/** Of an external run: its script ends it, when it next sends something. */
function externalStopActions(run: Run): Action[] {
  const kill: Action = {
    id: 'kill',
    label: 'Kill now',
    description: '',
    danger: true,
    unavailable: ELSEWHERE.kill,
  };
  if (run.state === 'stopping') return [kill];
  const stop: Action = {
    id: 'stop',
    label: 'Stop',
    description:
      'Asks its script to end, in the response to its next heartbeat. If the script sends nothing for a minute, the ' +
      'run is marked as stopped.',
    danger: false,
  };
  return [stop, kill];
}

const MARK_STOPPED: Action = {
  id: 'stop',
  label: 'Mark as stopped',
  description: 'Marks the run as stopped. If its script sends data again, they are still recorded.',
  danger: false,
};

/** The actions that a run's state allows. */
export function actionsFor(run: Run): Action[] {
  const external = !runsHere(run);
  if (run.state === 'starting' || run.state === 'running' || run.state === 'stopping') {
    if (run.command) return commandStopActions(run);
    return external ? externalStopActions(run) : stopActions(run);
  }
  const remove: Action = {
    id: 'delete',
    label: 'Delete',
    description:
      `Deletes its config, curves, log, episodes with their videos, and all checkpoints` +
      `${run.agent_steps > 0 ? `: ${formatInteger(run.agent_steps)} ${stepsOf(run)} of training` : ''}. ` +
      'You can undo this for an hour, under “Recently deleted”.',
    danger: true,
  };
  if (!hasEnded(run.state))
    return [external ? MARK_STOPPED : run.state === 'lost' ? STOP_LOST : CANCEL, remove];
  const archive: Action = run.archived
    ? { id: 'unarchive', label: 'Unarchive', description: 'Shows the run in the list again.', danger: false }
    : {
        id: 'archive',
        label: 'Archive',
        description: 'Hides the run from the list. Nothing is deleted, and it can be unarchived.',
        danger: false,
      };
  const unavailable = external ? ELSEWHERE.resume : run.demo ? NO_CHECKPOINT : undefined;
  const resume = run.command ? START_AGAIN : RESUME;
  return [unavailable === undefined ? resume : { ...resume, unavailable }, archive, remove];
}
