import { IconPhotoOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { spreadEpisodesQuery, type Episode } from '@/api/runResources';
import { useCurveView } from '@/components/chart/curveView';
import { formatCount, formatScore } from '@/lib/format';
import classes from './film.module.css';
import { evenly, spreadOut, xOf } from './placement';
import { thumbnailQuery } from './thumbnail';
import { usePlotAxis } from './usePlotAxis';

const [WIDTH, GAP] = [68, 6];

type Props = {
  run: string;
  /** What contains the chart above, whose horizontal axis the strip shares. */
  chart: HTMLElement | null;
  selected: string | undefined;
  onSelect: (episode: string) => void;
};

/** Recorded episodes as thumbnails at their training step; a click plays one. */
export function FilmStrip({ run, chart, selected, onSelect }: Props) {
  const axis = usePlotAxis(chart);
  const { view } = useCurveView();
  const n = axis ? Math.max(1, Math.floor((axis.width + WIDTH / 2) / (WIDTH + GAP))) : 0;
  const range = view.x === 'agent_steps' ? view.zoom : null;
  const { data: episodes = [] } = useQuery({ ...spreadEpisodesQuery(run, n, range), enabled: n > 0 });
  if (!axis) return <div className={classes.film} />;
  const places = placesOf(episodes, axis, view.x).slice(0, n);
  const lefts = spreadOut(
    places.map(({ centre }) => centre),
    WIDTH,
    GAP,
    axis.left + axis.width + WIDTH / 2,
  );
  return (
    <div className={classes.film} role="group" aria-label="Recorded episodes">
      <svg aria-hidden="true">
        {places.map(({ episode, centre }, at) => (
          <line
            key={episode.id}
            x1={centre}
            x2={(lefts[at] ?? 0) + WIDTH / 2}
            y1={0}
            y2={8}
            data-selected={episode.id === selected || undefined}
          />
        ))}
      </svg>
      {places.map(({ episode }, at) => (
        <Frame
          key={episode.id}
          episode={episode}
          left={lefts[at] ?? 0}
          selected={episode.id === selected}
          onSelect={onSelect}
        />
      ))}
    </div>
  );
}

/** The episodes inside the axis, with their places on it. */
function placesOf(
  episodes: readonly Episode[],
  axis: NonNullable<ReturnType<typeof usePlotAxis>>,
  x: ReturnType<typeof useCurveView>['view']['x'],
): { episode: Episode; centre: number }[] {
  const [from, to] = axis.range;
  const even = evenly(episodes.length, axis);
  return episodes
    .map((episode, at) => {
      const value = xOf(episode, x);
      const centre =
        value === undefined ? (even[at] ?? 0) : axis.left + ((value - from) / (to - from || 1)) * axis.width;
      return { episode, centre };
    })
    .filter(({ centre }) => centre >= axis.left - 1 && centre <= axis.left + axis.width + 1);
}

type FrameProps = {
  episode: Episode;
  left: number;
  selected: boolean;
  onSelect: (episode: string) => void;
};

function Frame({ episode, left, selected, onSelect }: FrameProps) {
  const [retries, setRetries] = useState(0);
  const { data: url, error } = useQuery(thumbnailQuery(episode.id, retries));
  const what = `${episode.kind === 'evaluation' ? 'Evaluation episode' : 'Episode'} at agent step ${formatCount(episode.agent_steps)}, return ${formatScore(episode.episode_return)}`;
  return (
    <button
      type="button"
      className={classes.frame}
      style={{ left, width: WIDTH }}
      aria-pressed={selected}
      aria-label={`Play: ${what}`}
      title={error ? `${what}. No thumbnail: ${error.message}` : what}
      onClick={() => {
        if (error) setRetries(retries + 1);
        onSelect(episode.id);
      }}
    >
      {url ? (
        <img src={url} alt="" className={classes.thumbnail} />
      ) : (
        <span className={classes.thumbnail} data-pending={!error || undefined}>
          {error && <IconPhotoOff size={16} aria-hidden="true" />}
        </span>
      )}
      <span className="nowrap">
        {formatCount(episode.agent_steps)} · {formatScore(episode.episode_return)}
      </span>
    </button>
  );
}
