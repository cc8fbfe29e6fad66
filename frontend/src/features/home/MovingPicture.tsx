import { useReducedMotion } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import classes from './home.module.css';

type Props = {
  /** A short video without sound; without one, the still picture is shown. */
  video: string | undefined;
  still?: string | undefined;
  moving: boolean;
};

/** A video that plays again and again, unless the reader or the system's settings want no motion. */
export function MovingPicture({ video, still, moving }: Props) {
  const reduced = useReducedMotion();
  const player = useRef<HTMLVideoElement>(null);
  const plays = moving && !reduced;
  useEffect(() => {
    if (plays) void player.current?.play().catch(() => undefined);
    else player.current?.pause();
  }, [plays]);
  if (!video) return <img src={still} alt="" className={classes.picture} />;
  return (
    <video
      ref={player}
      src={video}
      className={classes.picture}
      aria-hidden="true"
      muted
      loop
      playsInline
      preload="auto"
      tabIndex={-1}
    />
  );
}
