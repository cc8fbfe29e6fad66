import { useReducedMotion } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import classes from './home.module.css';

type Props = {
  /** A short video without sound; without one, a still frame is shown. */
  video: string | undefined;
  still?: string | undefined;
  moving: boolean;
};

/** A video that plays again and again, unless the reader or the system's settings want no motion. */
export function LoopedVideo({ video, still, moving }: Props) {
  const reduced = useReducedMotion();
  const player = useRef<HTMLVideoElement>(null);
  const plays = moving && !reduced;
  useEffect(() => {
    if (plays) void player.current?.play().catch(() => undefined);
    else player.current?.pause();
  }, [plays]);
  if (!video) return <img src={still} alt="" className={classes.video} />;
  return (
    <video
      ref={player}
      src={video}
      className={classes.video}
      aria-hidden="true"
      muted
      loop
      playsInline
      preload="auto"
      tabIndex={-1}
    />
  );
}
