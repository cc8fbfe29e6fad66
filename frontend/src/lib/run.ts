/** Run states and bounds. */

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

/** Whether the run neither trains nor waits to be started. */
export const hasEnded = (state: RunState): boolean =>
  state === 'finished' || state === 'stopped' || state === 'failed';

/** States of runs that ended, or perhaps will, before they had finished. */
export const BROKEN_OFF: ReadonlySet<RunState> = new Set(['stopped', 'failed', 'lost']);

/** The proposed bound for continuing a run: increased by its own size once it is reached. */
export const nextBound = (bound: number, reached: number): number =>
  reached >= bound ? Math.ceil(reached) + bound : bound;

/** Whether the run is trained elsewhere, by a script that only records it here. */
export const isExternal = ({ origin }: { origin: string }): boolean => origin === 'external';

/** Whether workers run it: Callboard's own algorithms, and hosts' commands. */
export const runsHere = ({ origin, command }: { origin: string; command: string | null }): boolean =>
  !isExternal({ origin }) || Boolean(command);

/** The query for the runs with exactly this tag. */
export const queryOfTag = (tag: string): string =>
  `tag=${/^[\w./-]+$/.test(tag) ? tag : `"${tag.replaceAll(/["\\]/g, String.raw`\$&`)}"`}`;

/** What an external run cannot do here, and why. */
export const ELSEWHERE = {
  kill: 'The run is trained elsewhere: only its own script can end it. Use Stop to request that.',
  resume: 'The run is trained elsewhere: only its own script can resume it.',
  clone: 'The run is trained elsewhere: only its own script can start another run.',
  fork: 'The run is trained elsewhere: its checkpoints are files of its own script, which cannot be loaded here.',
  evaluate:
    'The run is trained elsewhere: its checkpoints are files of its own script, which cannot be loaded here.',
} as const;

/** Why no run can be forked from a run; undefined if one can. */
export function whyNotForked(run: {
  origin: string;
  demo: boolean;
  agent_steps: number;
}): string | undefined {
  if (isExternal(run)) return ELSEWHERE.fork;
  if (run.demo) return 'The demo run has no checkpoint: clone it to train another one.';
  return run.agent_steps > 0 ? undefined : 'It has not trained yet.';
}

/** A run whose steps may be iterations. */
export type Counting = { step_unit: string };

/** What the steps of a run count. */
export const stepsOf = ({ step_unit }: Counting): string =>
  step_unit === 'iterations' ? 'iterations' : 'agent steps';

/** What the steps of some runs count, as a heading. */
export function stepsTitle(runs: readonly Counting[]): string {
  const units = new Set(runs.map(stepsOf));
  if (!units.has('iterations')) return 'Agent steps';
  return units.size > 1 ? 'Agent steps or iterations' : 'Iterations';
}

/** The seed of a run; undefined for an external run whose script has named none. */
export const seedOf = ({
  seed,
  seed_is_known,
}: {
  seed: number;
  seed_is_known: boolean;
}): number | undefined => (seed_is_known ? seed : undefined);
