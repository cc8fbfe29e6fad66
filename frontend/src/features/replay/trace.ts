import type { Trace as Recorded } from '@/api/runParts';

/** An episode as its line shows it; what was not finite is NaN and leaves a gap. */
export type Trace = {
  rewards: Float64Array;
  values: Float64Array;
  policies: readonly (number | null)[][];
  actions: Recorded['actions'];
  lives: readonly number[];
  actionNames: readonly string[];
  framesPerStep: number;
  /** The agent thinks in Q: what stands for a policy is Q of each action. */
  actionValues: boolean;
};

const floats = (values: readonly (number | null)[]): Float64Array =>
  Float64Array.from(values, (value) => value ?? NaN);

export const toTrace = (recorded: Recorded): Trace => ({
  rewards: floats(recorded.rewards),
  values: floats(recorded.values),
  policies: recorded.policies,
  actions: recorded.actions,
  lives: recorded.lives,
  actionNames: recorded.action_names,
  framesPerStep: recorded.frames_per_step,
  actionValues: recorded.action_values,
});
