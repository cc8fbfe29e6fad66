import { Loader } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useCallback, useState, type CSSProperties } from 'react';
import { episodesQuery } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { useMediaUrl } from '@/api/session';
import { Problem } from '@/components/feedback';
import { Name } from '@/components/text';
import { formatCount, formatScore } from '@/lib/format';
import { hasEnded } from '@/lib/run';
import classes from './replay.module.css';
import { isFailed, shapeOf, usualShapeOf, videoQuery, videoUrl } from './video';

/** Which episode of each run: the best, the latest, or the last one up to an agent step of training. */
export type Selection = 'best' | 'latest' | { at: number };

type TileProps = {
  run: Run;
  /** The run's name, or what distinguishes it from the others. */
  name: string;
  selection: Selection;
  attach: (run: string, element: HTMLVideoElement | null) => void;
  onLoaded: (video: HTMLVideoElement) => void;
};

const emptyText = (run: Run, at: number | undefined): string => {
  if (at !== undefined) return 'No recorded episode up to this agent step';
  return hasEnded(run.state) ? 'No recorded episode' : 'No recorded episode yet';
};

/** One run of a side-by-side replay. */
export function SideTile({ run, name, selection, attach, onLoaded }: TileProps) {
  const sort = selection === 'best' ? '-episode_return' : '-agent_steps';
  const at = typeof selection === 'object' ? selection.at : undefined;
  const list = useInfiniteQuery(episodesQuery(run.id, sort, at));
  const [shape, setShape] = useState(() => usualShapeOf(run.environment));
  const key = `${sort} ${at ?? ''}`;
  const first = list.data?.pages[0]?.items[0];
  // The episode stays the same while newer ones are recorded.
  const [episode, setEpisode] = useState(first);
  const [previousKey, setPreviousKey] = useState(key);
  if ((!episode || previousKey !== key) && list.isSuccess && (first || previousKey !== key)) {
    setEpisode(first);
    setPreviousKey(key);
  }
  const [retries, setRetries] = useState(0);
  const video = useQuery({
    ...videoQuery(run.id, episode?.id ?? '', retries),
    enabled: episode !== undefined,
  });
  const src = useMediaUrl(videoUrl(episode?.id ?? ''), video.data === 'ready');
  const ref = useCallback((element: HTMLVideoElement | null) => attach(run.id, element), [attach, run.id]);
  return (
    <figure className={classes.tile}>
      <div className={classes.stage} style={{ '--shape': shape } as CSSProperties}>
        {list.error && !list.data ? (
          <Problem error={list.error} onRetry={() => void list.refetch()} />
        ) : isFailed(video) ? (
          <Problem error={video.error} onRetry={() => setRetries((before) => before + 1)} />
        ) : episode && video.data === 'ready' ? (
          <video
            key={episode.id}
            ref={ref}
            src={src}
            muted
            playsInline
            preload="auto"
            aria-label={`Video of an episode of ${run.name}`}
            onLoadedMetadata={({ currentTarget }) => {
              setShape(shapeOf(currentTarget));
              onLoaded(currentTarget);
            }}
          />
        ) : list.isSuccess && !first ? (
          emptyText(run, at)
        ) : (
          <span className="row" role="status">
            <Loader size={14} color="gray" /> Rendering…
          </span>
        )}
      </div>
      <figcaption>
        <Name name={name} title={run.name} />
        {episode && (
          <span className="muted">
            return <span className="num">{formatScore(episode.episode_return)}</span> at agent step{' '}
            <span className="num">{formatCount(episode.agent_steps)}</span>
          </span>
        )}
      </figcaption>
    </figure>
  );
}
