/** What each state of a run is called, and how it looks. */

export const STATES = [
  'queued',
  'starting',
  'running',
  'stopping',
  'finished',
  'stopped',
  'failed',
  'lost',
] as const;

export type RunState = (typeof STATES)[number];

const COLOURS: Record<RunState, string> = {
  queued: 'var(--muted)',
  starting: 'var(--running)',
  running: 'var(--running)',
  stopping: 'var(--lost)',
  finished: 'var(--finished)',
  stopped: 'var(--muted)',
  failed: 'var(--failed)',
  lost: 'var(--lost)',
};

const MEANINGS: Record<RunState, string> = {
  queued: 'Waits for a host with a free slot.',
  starting: 'A host has taken it and is building its world and network.',
  running: 'Training.',
  stopping: 'Was asked to stop; it is saving its last checkpoint.',
  finished: 'Reached its stopping bound.',
  stopped: 'Was stopped by someone. It can be resumed from its newest checkpoint.',
  failed: 'Ended with an error. The log tells which.',
  lost: 'Its host no longer answers. It goes on by itself from its newest checkpoint.',
};

export const stateColour = (state: RunState): string => COLOURS[state];
export const stateMeaning = (state: RunState): string => MEANINGS[state];

/** Nothing runs and nothing waits to run. */
export const hasEnded = (state: RunState): boolean =>
  state === 'finished' || state === 'stopped' || state === 'failed';

/** May be asked to stop. */
export const canStop = (state: RunState): boolean =>
  state === 'queued' || state === 'starting' || state === 'running' || state === 'lost';
