import type { MediaSeries } from '@/api/media';

/** The agent steps at which any of a run's media was logged, in order. */
export function unionOfSteps(series: readonly MediaSeries[]): number[] {
  return [...new Set(series.flatMap(({ agent_steps }) => agent_steps))].sort((a, b) => a - b);
}

/** The place in sorted steps of the latest one that is not after `step`; the first one if all are later. */
export function placeAt(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] ?? 0) <= step) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The ids of what a series has at the same agent step as its latest item up to `step`, and that step. */
export function itemsAt(
  { agent_steps, ids }: Pick<MediaSeries, 'agent_steps' | 'ids'>,
  step: number,
): { at: number; ids: string[] } {
  const at = agent_steps[placeAt(agent_steps, step)] ?? 0;
  const first = agent_steps.indexOf(at);
  const last = agent_steps.lastIndexOf(at);
  return { at, ids: ids.slice(first, last + 1) };
}
