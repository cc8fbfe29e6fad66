import { useEffect, useRef, useState } from 'react';
import { useMediaUrl } from '@/api/session';
import classes from './replay.module.css';
import { stepAt, timeOf } from './usePlayback';
import { observationsUrl } from './video';

type Props = {
  episode: string;
  step: number;
  steps: number;
  /** The playback of the episode's video, which this one follows. */
  playback: { playing: boolean; speed: number; duration_s: number };
};

/** The rates at which browsers play a video. */
const MIN_RATE = 0.0625;
const MAX_RATE = 16;

/** The network's observation at a step; nothing for vector observations or an episode without a rendering. */
export function Observations({ episode, step, steps, playback }: Props) {
  const video = useRef<HTMLVideoElement>(null);
  const [loaded, setLoaded] = useState(false);
  const src = useMediaUrl(observationsUrl(episode));
  const [missing, setMissing] = useState(false);
  const { playing, speed, duration_s } = playback;

  useEffect(() => {
    const element = video.current;
    if (!element || !loaded) return;
    const rate = (speed * element.duration) / duration_s;
    if (playing && rate >= MIN_RATE && rate <= MAX_RATE) {
      // Played in step: a seek takes longer than a step at high speeds.
      element.playbackRate = rate;
      void element.play().catch(() => undefined);
    } else element.pause();
  }, [playing, speed, duration_s, loaded]);

  useEffect(() => {
    const element = video.current;
    if (!element || !loaded || element.seeking) return;
    const behind = Math.abs(stepAt(element.currentTime, element.duration, steps) - step);
    if (element.paused || behind > 1) element.currentTime = timeOf(step, element.duration, steps);
  }, [step, steps, loaded]);

  if (missing) return null;
  return (
    <figure className={classes.observations} hidden={!loaded}>
      <video
        ref={video}
        src={src}
        muted
        playsInline
        preload="auto"
        aria-label="Observation"
        onLoadedMetadata={() => setLoaded(true)}
        onError={() => setMissing(true)}
        onSeeked={({ currentTarget }) => {
          if (!currentTarget.paused) return;
          // The step may have changed during the seek.
          const due = timeOf(step, currentTarget.duration, steps);
          if (Math.abs(currentTarget.currentTime - due) > 1e-3) currentTarget.currentTime = due;
        }}
      />
      <figcaption className="muted">Observation (network input)</figcaption>
    </figure>
  );
}
