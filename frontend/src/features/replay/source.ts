import { keys } from '@/api/keys';
import { readTrace, type Episode } from '@/api/runResources';
import { type ExportSource, sourceAt } from '@/components/chart/export/source';
import type { Recorded } from './trace';
import { videoUrl } from './video';

/** What the player shows: an agent's episode, or a game that a person or script has played. */
export type Source = {
  id: string;
  steps: number;
  videoUrl: string;
  videoKey: readonly unknown[];
  traceKey: readonly unknown[];
  readTrace: (id: string, signal: AbortSignal) => Promise<Recorded>;
  label: string;
  /** Whether an agent has played it, with values, policies and observations. */
  byAgent: boolean;
  /** Whether there is a video of the network's input. */
  hasObservations: boolean;
  /** The timeline as a figure for a paper. */
  timeline: ExportSource;
};

/** The points of a figure: one for each agent step, except in the longest episodes. */
export const MAX_POINTS = 10_000;

export const sourceOfEpisode = ({
  id,
  run_id,
  length_steps,
  agent_steps,
  observations,
}: Episode): Source => ({
  id,
  steps: length_steps,
  videoUrl: videoUrl(id),
  videoKey: keys.runResource(run_id, 'video', id),
  traceKey: keys.trace(id),
  readTrace,
  label: `Video of the episode that ended at agent step ${agent_steps}`,
  byAgent: true,
  hasObservations: observations,
  timeline: sourceAt(
    { name: 'episode_trace', title: 'Timeline of the episode' },
    '/api/v1/figures/episode_trace',
    { episode: id, panel: ['reward', 'value', 'value_error'], points: MAX_POINTS },
  ),
});
