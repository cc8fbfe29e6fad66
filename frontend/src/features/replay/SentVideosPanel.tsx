import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { videosQuery } from '@/api/runResources';
import { Empty, Loading, Problem } from '@/components/feedback';
import classes from './replay.module.css';

/** In place of the agent's panel: whether the script of an external run, which has no replays, has sent videos. */
export function SentVideosPanel({ run, onShow }: { run: string; onShow: () => void }) {
  const { data, error, refetch } = useInfiniteQuery(videosQuery(run));
  const hasVideos = data?.pages.some(({ items }) => items.length > 0);
  return (
    <section className={`panel ${classes.agent}`} aria-label="Videos">
      <h2 className="section-title">Videos</h2>
      {error && !data ? (
        <Problem error={error} onRetry={() => void refetch()} />
      ) : hasVideos === undefined ? (
        <Loading label="Loading the videos" />
      ) : hasVideos ? (
        <Empty
          action={
            <Button size="xs" variant="default" onClick={onShow}>
              Show the videos
            </Button>
          }
        >
          An external run has no replays. Its script has sent videos.
        </Empty>
      ) : (
        <Empty>An external run has no replays. Its script has sent no video yet.</Empty>
      )}
    </section>
  );
}
