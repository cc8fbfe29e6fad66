import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { videosQuery } from '@/api/runResources';
import { useMediaUrl } from '@/api/session';
import { Empty } from '@/components/feedback';
import { served } from '@/lib/base';
import { formatCount } from '@/lib/format';
import classes from './replay.module.css';

/** In place of the agent's panel: the latest video that the script of an external run has sent; absent without one. */
export function SentVideosPanel({ run, step, onShow }: { run: string; step: string; onShow: () => void }) {
  const { data } = useInfiniteQuery(videosQuery(run));
  const videos = data?.pages.flatMap(({ items }) => items) ?? [];
  const latest = videos.find(({ state }) => state === 'done');
  const src = useMediaUrl(served(`/api/v1/videos/${latest?.id ?? ''}/file`));
  if (videos.length === 0) return null;
  return (
    <section className={`panel ${classes.agent}`} aria-label="Videos">
      <header className="row">
        <h2 className="section-title">Latest video</h2>
        {latest && (
          <span className="muted">
            at {step} {formatCount(latest.agent_steps)}
          </span>
        )}
        <span className="grow" />
        <Button variant="default" onClick={onShow}>
          All videos
        </Button>
      </header>
      {latest ? (
        <video
          key={latest.id}
          className={classes.sent}
          src={src}
          aria-label={`Latest video, at ${step} ${formatCount(latest.agent_steps)}`}
          controls
          autoPlay
          muted
          loop
          playsInline
        />
      ) : (
        <Empty>Its script has sent videos; none can be shown yet.</Empty>
      )}
    </section>
  );
}
