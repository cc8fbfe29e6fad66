import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { videosQuery, type Video } from '@/api/runResources';
import { ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { DASH, formatBytes, formatCount, formatDuration, formatInteger } from '@/lib/format';

const STATE: Record<Video['state'], string> = {
  queued: 'queued for encoding',
  running: 'encoding…',
  done: 'encoded',
  failed: 'cannot be shown',
};

type Props = {
  run: string;
  /** What the run counts: "agent step" or "iteration". */
  step: string;
  selected: string | undefined;
  onSelect: (video: string) => void;
};

/** The videos that the script of an external run has sent, each of which can be watched. */
export function VideosTab({ run, step, selected, onSelect }: Props) {
  const pages = useInfiniteQuery(videosQuery(run));
  const { data, error, refetch } = pages;
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the videos" />;
  const videos = data.pages.flatMap(({ items }) => items);
  if (videos.length === 0) return <Empty>No videos yet: the run’s script has sent none.</Empty>;
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
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
              <tr key={video.id} aria-current={video.id === selected || undefined}>
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
                      variant={video.id === selected ? 'filled' : 'default'}
                      onClick={() => onSelect(video.id)}
                      aria-label={`Watch the video at ${step} ${formatInteger(video.agent_steps)}`}
                    >
                      {video.id === selected ? 'Selected' : 'Watch'}
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
