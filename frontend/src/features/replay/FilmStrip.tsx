import { IconPhotoOff } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  spreadEpisodesQuery,
  spreadVideosQuery,
  videosQuery,
  type Episode,
  type Video,
} from '@/api/runResources';
import { useCurveView } from '@/components/chart/curveView';
import { formatCount, formatScore } from '@/lib/format';
import classes from './film.module.css';
import { evenly, type Moment, spreadOut, xOf } from './placement';
import { thumbnailQuery } from './thumbnail';
import { usePlotAxis } from './usePlotAxis';

/** A thumbnail is as wide as the label below it, such as `15.1k · 183.0`. */
const [WIDTH, GAP] = [68, 14];

/** A recorded episode, or a video that a script has sent. */
type Shot = Moment & {
  id: string;
  /** What it is, in words; the caption stands below its thumbnail. */
  what: string;
  caption: string;
};

type Props = {
  run: string;
  of: 'episodes' | 'videos';
  /** What the run counts: "agent step" or "iteration". */
  step: string;
  /** What contains the chart above, whose horizontal axis the strip shares. */
  chart: HTMLElement | null;
  selected: string | undefined;
  onSelect: (id: string) => void;
};

/** Recorded episodes, or the videos of an external run, as thumbnails at their training step; a click plays one. */
export function FilmStrip({ run, of, step, chart, selected, onSelect }: Props) {
  const axis = usePlotAxis(chart);
  const { view } = useCurveView();
  const n = axis ? Math.max(1, Math.floor((axis.width + WIDTH / 2) / (WIDTH + GAP))) : 0;
  const range = view.x === 'agent_steps' ? view.zoom : null;
  const isOfEpisodes = of === 'episodes';
  const { data: episodes = [] } = useQuery({
    ...spreadEpisodesQuery(run, n, range),
    enabled: isOfEpisodes && n > 0,
  });
  const { data: videos = [] } = useQuery({
    ...spreadVideosQuery(run, n, range),
    enabled: !isOfEpisodes && n > 0,
  });
  // The same request as that of the panel beside it. Most external runs have no videos, and need no room for them.
  const sent = useInfiniteQuery({ ...videosQuery(run), enabled: !isOfEpisodes });
  const hasSent = sent.data?.pages.some(({ items }) => items.some(({ state }) => state === 'done'));
  if (!isOfEpisodes && !hasSent) return null;
  if (!axis) return <div className={classes.film} />;
  const shots = isOfEpisodes ? episodes.map(shotOf) : videos.map((video) => sentShot(video, step));
  const places = placesOf(shots, axis, view.x).slice(0, n);
  const panelWidth = chart ? contentWidth(chart) : 0; // on a phone the axis ends near the panel's edge
  const lefts = spreadOut(
    places.map(({ centre }) => centre),
    WIDTH,
    GAP,
    Math.min(axis.left + axis.width + WIDTH / 2, panelWidth > 0 ? panelWidth : Infinity),
  );
  return (
    <div
      className={classes.film}
      role="group"
      aria-label={isOfEpisodes ? 'Recorded episodes' : 'Sent videos'}
    >
      <svg aria-hidden="true">
        {places.map(({ shot, centre }, at) => (
          <line
            key={shot.id}
            x1={centre}
            x2={(lefts[at] ?? 0) + WIDTH / 2}
            y1={0}
            y2={8}
            data-selected={shot.id === selected || undefined}
          />
        ))}
      </svg>
      {places.map(({ shot }, at) => (
        <Frame
          key={shot.id}
          of={of}
          shot={shot}
          left={lefts[at] ?? 0}
          selected={shot.id === selected}
          onSelect={onSelect}
        />
      ))}
    </div>
  );
}

function contentWidth(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return element.clientWidth - (parseFloat(paddingLeft) || 0) - (parseFloat(paddingRight) || 0);
}

const shotOf = (episode: Episode): Shot => ({
  ...episode,
  what: `${episode.kind === 'evaluation' ? 'Evaluation episode' : 'Episode'} at agent step ${formatCount(episode.agent_steps)}, return ${formatScore(episode.episode_return)}`,
  caption: `${formatCount(episode.agent_steps)} · ${formatScore(episode.episode_return)}`,
});

const sentShot = (video: Video, step: string): Shot => ({
  id: video.id,
  agent_steps: video.agent_steps,
  wall_time_s: video.wall_time_s,
  what: `Video at ${step} ${formatCount(video.agent_steps)}`,
  caption: formatCount(video.agent_steps),
});

/** The shots inside the axis, with their places on it. */
function placesOf(
  shots: readonly Shot[],
  axis: NonNullable<ReturnType<typeof usePlotAxis>>,
  x: ReturnType<typeof useCurveView>['view']['x'],
): { shot: Shot; centre: number }[] {
  const [from, to] = axis.range;
  const even = evenly(shots.length, axis);
  return shots
    .map((shot, at) => {
      const value = xOf(shot, x);
      const centre =
        value === undefined ? (even[at] ?? 0) : axis.left + ((value - from) / (to - from || 1)) * axis.width;
      return { shot, centre };
    })
    .filter(({ centre }) => centre >= axis.left - 1 && centre <= axis.left + axis.width + 1);
}

type FrameProps = {
  of: Props['of'];
  shot: Shot;
  left: number;
  selected: boolean;
  onSelect: (id: string) => void;
};

function Frame({ of, shot, left, selected, onSelect }: FrameProps) {
  const [retries, setRetries] = useState(0);
  const { data, error } = useQuery(thumbnailQuery(of, shot.id, retries));
  const url = data?.url;
  const { what } = shot;
  return (
    <button
      type="button"
      className={classes.frame}
      style={{ left, width: WIDTH }}
      aria-pressed={selected}
      aria-label={`Play ${shot.caption}: ${what}`}
      title={error ? `${what}. No thumbnail: ${error.message}` : what}
      onClick={() => {
        if (error) setRetries(retries + 1);
        onSelect(shot.id);
      }}
    >
      {url ? (
        <img src={url} alt="" className={classes.thumbnail} />
      ) : (
        <span className={classes.thumbnail} data-pending={!error || undefined}>
          {error && <IconPhotoOff size={16} aria-hidden="true" />}
        </span>
      )}
      <span className="nowrap">{shot.caption}</span>
    </button>
  );
}
