/** The steps of an episode worth a look: rewards, lost lives and the largest value error. */
import { lostLives } from './draw';
import type { Trace } from './trace';

export type Jumps = {
  rewards: readonly number[];
  lostLives: readonly number[];
  /** The step at which the value is furthest from the discounted return; null without either. */
  largestError: number | null;
};

/** Value minus discounted return at each step; NaN where no value was recorded. */
export const valueErrors = (values: ArrayLike<number>, returns: ArrayLike<number>): Float64Array =>
  Float64Array.from(values, (value, step) => value - (returns[step] ?? NaN));

export function jumpsOf(trace: Trace, errors: Float64Array | undefined): Jumps {
  let largestError: number | null = null;
  errors?.forEach((error, step) => {
    if (Number.isNaN(error)) return;
    if (largestError === null || Math.abs(error) > Math.abs(errors[largestError] ?? 0)) largestError = step;
  });
  const rewards = Array.from(trace.rewards.keys()).filter((step) => Math.abs(trace.rewards[step] ?? 0) > 0);
  return { rewards, lostLives: lostLives(trace.lives), largestError };
}

/** Rewards are marked unless more than this share of the steps has one: the marks would be a bar. */
const MAX_MARKED = 0.25;

/** The jumps that a timeline of so many steps marks: a small one has no value error. */
export const markedOf = (jumps: Jumps, steps: number, compact: boolean): Jumps => ({
  rewards: jumps.rewards.length <= steps * MAX_MARKED ? jumps.rewards : [],
  lostLives: jumps.lostLives,
  largestError: compact ? null : jumps.largestError,
});

/** The step of a mark that is at most `within` steps away, the closest; otherwise the step itself. */
export function snapped({ rewards, lostLives, largestError }: Jumps, step: number, within: number): number {
  const marks = [...rewards, ...lostLives, ...(largestError === null ? [] : [largestError])];
  const away = (mark: number): number => Math.abs(mark - step);
  const closest = marks.reduce((best, mark) => (away(mark) < away(best) ? mark : best), Infinity);
  return away(closest) <= within ? closest : step;
}

/** The first of `steps` after `step`, or before it with `back`; around the end if there is none. */
export function nextOf(steps: readonly number[], step: number, back = false): number | undefined {
  return back
    ? (steps.findLast((other) => other < step) ?? steps.at(-1))
    : (steps.find((other) => other > step) ?? steps[0]);
}
