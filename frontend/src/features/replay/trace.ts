import type { Trace as OfEpisode } from '@/api/runResources';
import type { Played } from './turns';

/** A trace as the service sends it; that of a game names who played it. */
export type Recorded = OfEpisode & Partial<Played>;

/** A recorded episode, by step; missing values are NaN and leave gaps in the timeline. */
export type Trace = {
  rewards: Float64Array;
  values: Float64Array;
  policies: readonly (number | null)[][];
  actions: Recorded['actions'];
  lives: readonly number[];
  /** What stands for the return after the last step: its value if the episode was truncated, else null. */
  bootstrap: number | null;
  actionNames: readonly string[];
  framesPerStep: number;
  /** Whether `policies` holds the Q value of each action instead of its probability. */
  actionValues: boolean;
  /** Who made the decisions, where several did. */
  played: Played | undefined;
};

/** Atari's action names, in words: UPRIGHTFIRE is "up right fire". */
const WORDS = /NOOP|FIRE|UP|DOWN|LEFT|RIGHT/g;

/** An action's name in words, such as "forward, look left" for `forward_look_left`. */
export function readableAction(name: string): string {
  const upper = name.toUpperCase();
  if (name === upper && upper.replace(WORDS, '') === '') {
    return (upper.match(WORDS) ?? []).join(' ').toLowerCase().replace('noop', 'no-op');
  }
  return name
    .toLowerCase()
    .replace(/_(?=look|turn|strafe)/g, ', ')
    .replaceAll('_', ' ');
}

const floats = (values: readonly (number | null)[]): Float64Array =>
  Float64Array.from(values, (value) => value ?? NaN);

export const toTrace = (recorded: Recorded): Trace => ({
  rewards: floats(recorded.rewards),
  values: floats(recorded.values),
  policies: recorded.policies,
  actions: recorded.actions,
  lives: recorded.lives,
  bootstrap: recorded.truncated ? (recorded.values.at(-1) ?? 0) : null,
  actionNames: recorded.action_names.map(readableAction),
  framesPerStep: recorded.frames_per_step,
  actionValues: recorded.action_values,
  played: playedOf(recorded),
});

/** Undefined where nobody but the first actor has acted. */
function playedOf({ actors, turns }: Recorded): Played | undefined {
  if (!actors || !turns?.some(([actor]) => actor !== 0)) return undefined;
  return { actors, turns };
}

/** How the learner of a run discounts and clips rewards. */
export type Learner = {
  gamma: number;
  /** The largest absolute reward; null without clipping. */
  clip: number | null;
  /** Whether it learns from single lives: its values end where one is lost. */
  isPerLife: boolean;
};

/** The learner of a run with these settings; undefined if they have no discount, as of an external run. */
export function learnerOf(config: unknown, environmentConfig?: unknown): Learner | undefined {
  const { life_loss_terminal: isPerLife = false } = (environmentConfig ?? {}) as {
    life_loss_terminal?: boolean;
  };
  const { gamma, reward_clip: clip = 0 } = (config ?? {}) as { gamma?: number; reward_clip?: number };
  return gamma === undefined ? undefined : { gamma, clip: clip > 0 ? clip : null, isPerLife };
}

/**
 * The discounted return at each step, which V or Q estimates: R_t = r_t + gamma * R_{t+1}, with rewards clipped as
 * by the learner. The reward after the episode's end counts as 0; for a learner of single lives, that after a lost
 * life too. `lives` are those left after each decision. `bootstrap` stands for the return after an episode that was
 * truncated.
 */
export function discountedReturns(
  rewards: ArrayLike<number>,
  lives: ArrayLike<number>,
  { gamma, clip, isPerLife }: Learner,
  bootstrap: number | null = null,
): Float64Array {
  const returns = new Float64Array(rewards.length);
  let total = bootstrap ?? 0;
  for (let t = rewards.length - 1; t >= 0; t -= 1) {
    const reward = rewards[t] ?? 0;
    const clipped = clip === null ? reward : Math.max(-clip, Math.min(clip, reward));
    // None are left after the last decision of a truncated episode, though it has lost none.
    const losesLife = t > 0 && (bootstrap === null || t < rewards.length - 1);
    const isLastOfLife = isPerLife && losesLife && (lives[t] ?? 0) < (lives[t - 1] ?? 0);
    total = clipped + (isLastOfLife ? 0 : gamma * total);
    returns[t] = total;
  }
  return returns;
}
