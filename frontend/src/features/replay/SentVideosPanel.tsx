import { Button } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useRef, useState, type Ref } from 'react';
import { videoQuery, videosQuery } from '@/api/runResources';
import { useMediaUrl } from '@/api/session';
import { Empty } from '@/components/feedback';
import { served } from '@/lib/base';
import { formatCount } from '@/lib/format';
import { useFullSizeKey } from '@/lib/hooks';
import classes from './replay.module.css';

type Props = {
  run: string;
  /** What the run counts: "agent step" or "iteration". */
  step: string;
  /** The id of a selected video; without it the latest is shown. */
  selected: string | undefined;
  onDeselect: () => void;
  /** Shows the list of all videos. */
  onShow: () => void;
  ref?: Ref<HTMLElement>;
};

/** In place of the agent's panel: a video that the script of an external run has sent; absent without one. */
export function SentVideosPanel({ run, step, selected, onDeselect, onShow, ref }: Props) {
  const { data } = useInfiniteQuery(videosQuery(run));
  const single = useQuery({ ...videoQuery(run, selected ?? ''), enabled: selected !== undefined });
  const [broken, setBroken] = useState<string | null>(null);
  const videos = data?.pages.flatMap(({ items }) => items) ?? [];
  const latest = videos.find(({ state }) => state === 'done');
  const shown = selected === undefined ? latest : single.data;
  const src = useMediaUrl(served(`/api/v1/videos/${shown?.id ?? ''}/file`));
  const player = useRef<HTMLVideoElement>(null);
  useFullSizeKey(
    () => void (document.fullscreenElement ? document.exitFullscreen() : player.current?.requestFullscreen()),
  );
  if (videos.length === 0 && selected === undefined) return null;
  const name = selected === undefined ? 'Latest video' : 'Video';
  const isShown = shown?.state === 'done' && shown.id !== broken;
  return (
    <section ref={ref} tabIndex={-1} className={`panel ${classes.agent}`} aria-label="Videos">
      <header className="row wrap">
        <h2 className="section-title">{name}</h2>
        {shown && (
          <span className="muted">
            at {step} {formatCount(shown.agent_steps)}
          </span>
        )}
        <span className="grow" />
        {selected !== undefined && (
          <Button variant="default" onClick={onDeselect}>
            Latest
          </Button>
        )}
        <Button variant="default" onClick={onShow}>
          All videos
        </Button>
      </header>
      {isShown ? (
        <video
          key={shown.id}
          ref={player}
          className={classes.sent}
          src={src}
          aria-label={`${name}, at ${step} ${formatCount(shown.agent_steps)}`}
          controls
          autoPlay
          muted
          loop
          playsInline
          onError={() => setBroken(shown.id)}
        />
      ) : single.error ? (
        <Empty>The selected video is not there: it has been removed, or the address is wrong.</Empty>
      ) : broken !== null && shown?.id === broken ? (
        <Empty>The video cannot be played: its file is missing or damaged.</Empty>
      ) : selected !== undefined ? (
        shown && <Empty>The selected video cannot be shown{shown.error ? `: ${shown.error}` : ' yet'}.</Empty>
      ) : (
        <Empty>Its script has sent videos; none can be shown yet.</Empty>
      )}
    </section>
  );
}
