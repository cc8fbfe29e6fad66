import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { videosQuery, type Video } from '@/api/runResources';
import { useMediaUrl } from '@/api/session';
import { ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { served } from '@/lib/base';
import { DASH, formatBytes, formatCount, formatDuration, formatInteger } from '@/lib/format';
import classes from './run.module.css';

const STATE: Record<Video['state'], string> = {
  queued: 'queued for encoding',
  running: 'encoding…',
  done: 'encoded',
  failed: 'cannot be shown',
};

/** The player is above the list. */
const intoView = (player: HTMLElement | null) => player?.scrollIntoView({ block: 'nearest' });

type Props = {
  run: string;
  /** What the run counts: "agent step" or "iteration". */
  step: string;
  selected: string | undefined;
  onSelect: (video: string) => void;
};

/** The videos that the script of an external run has sent. */
export function VideosTab({ run, step, selected, onSelect }: Props) {
  const [broken, setBroken] = useState<string | null>(null);
  const src = useMediaUrl(served(`/api/v1/videos/${selected ?? ''}/file`));
  const pages = useInfiniteQuery(videosQuery(run));
  const { data, error, refetch, hasNextPage, fetchNextPage } = pages;
  const isListed = data?.pages.some(({ items }) => items.some(({ id }) => id === selected)) ?? false;
  const searches = selected !== undefined && !isListed && hasNextPage && !error;
  const nPages = data?.pages.length;
  useEffect(() => {
    if (searches) void fetchNextPage();
  }, [searches, nPages, fetchNextPage]);
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the videos" />;
  const videos = data.pages.flatMap(({ items }) => items);
  if (videos.length === 0) return <Empty>No videos yet: the run’s script has sent none.</Empty>;
  const shown = videos.find(({ id, state }) => id === selected && state === 'done');
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {selected !== undefined && !isListed && !hasNextPage && (
        <Empty>The selected video is not there: it has been removed, or the address is wrong.</Empty>
      )}
      {shown?.id === broken && <Empty>The video cannot be played: its file is missing or damaged.</Empty>}
      {shown && shown.id !== broken && (
        <video
          key={shown.id}
          ref={intoView}
          className={classes.video}
          src={src}
          aria-label={`Video at ${step} ${formatInteger(shown.agent_steps)}`}
          controls
          autoPlay
          muted
          loop
          onError={() => setBroken(shown.id)}
        />
      )}
      <ScrollPanel label="Videos">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">At {step}</th>
              <th className="wide">Received</th>
              <th className="right">Length</th>
              <th className="right wide">Frames</th>
              <th className="right wide">Size</th>
              <th>Video</th>
              <th className="actions">
                <span className="visually-hidden">Watch</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {videos.map((video) => (
              <tr key={video.id} aria-current={video.id === shown?.id || undefined}>
                <td className="right num" title={formatInteger(video.agent_steps)}>
                  {formatCount(video.agent_steps)}
                </td>
                <td className="wide">
                  <RelativeTime at={video.received_at} />
                </td>
                <td className="right num">
                  {video.duration_s === null ? DASH : formatDuration(video.duration_s)}
                </td>
                <td className="right num wide">
                  {video.n_frames === null ? DASH : formatInteger(video.n_frames)}
                </td>
                <td className="right num wide">{formatBytes(video.size_bytes)}</td>
                <td className="muted">
                  {STATE[video.state]}
                  {video.error !== null && `: ${video.error}`}
                </td>
                <td className="actions">
                  {video.state === 'done' && (
                    <Button
                      size="compact-xs"
                      variant={video.id === shown?.id ? 'filled' : 'default'}
                      onClick={() => onSelect(video.id)}
                      aria-label={`Watch the video at ${step} ${formatInteger(video.agent_steps)}`}
                    >
                      {video.id === shown?.id ? 'Selected' : 'Watch'}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      <ShowMore query={pages} mt={8} />
    </>
  );
}
