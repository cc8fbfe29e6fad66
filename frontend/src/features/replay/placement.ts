/** Where the thumbnails of a film strip stand. */

import type { Range, XAxis } from '@/api/series';

/** The horizontal axis of a drawn chart: pixels from the left of the strip, and what they stand for. */
export type PlotAxis = { left: number; width: number; range: Range };

/** When an episode ended, or a video was sent. */
export type Moment = { agent_steps: number; frames?: number; wall_time_s: number | null };

/** A moment's place on the axis; undefined where it is not known. */
export function xOf(moment: Moment, x: XAxis): number | undefined {
  if (x === 'agent_steps') return moment.agent_steps;
  if (x === 'frames') return moment.frames;
  return x === 'wall_time_s' ? (moment.wall_time_s ?? undefined) : undefined;
}

/**
 * The left edges of frames `width` wide, as near to the places `centres` as they can be in their order without
 * overlap, inside `total`.
 */
export function spreadOut(centres: readonly number[], width: number, gap: number, total: number): number[] {
  const lefts = centres.map((centre) => centre - width / 2);
  let next = 0;
  for (const [at, left] of lefts.entries()) {
    lefts[at] = Math.max(left, next);
    next = (lefts[at] ?? 0) + width + gap;
  }
  let end = total;
  for (let at = lefts.length - 1; at >= 0; at -= 1) {
    lefts[at] = Math.min(lefts[at] ?? 0, end - width);
    end = (lefts[at] ?? 0) - gap;
  }
  return lefts;
}

/** Evenly spaced places, for an axis on which those of the episodes are unknown. */
export const evenly = (n: number, { left, width }: PlotAxis): number[] =>
  Array.from({ length: n }, (_, at) => left + ((at + 0.5) / n) * width);
