import { useEffect, useRef, useState } from 'react';
import { timeOf } from './envelope';
import classes from './replay.module.css';
import { observationsUrl } from './video';

type Props = { episode: string; step: number; steps: number };

/** What the network saw at this decision; nothing where it saw numbers, or where it was never drawn. */
export function Observations({ episode, step, steps }: Props) {
  const video = useRef<HTMLVideoElement>(null);
  const [there, setThere] = useState(false);
  const [gone, setGone] = useState(false);

  useEffect(() => {
    const element = video.current;
    // One picture a decision, so it follows the decision and keeps no time of its own.
    if (element && there && !element.seeking) element.currentTime = timeOf(step, element.duration, steps);
  }, [step, steps, there]);

  if (gone) return null;
  return (
    <figure className={classes.observations} hidden={!there}>
      <video
        ref={video}
        src={observationsUrl(episode)}
        muted
        playsInline
        preload="auto"
        aria-label="What the network saw"
        onLoadedMetadata={() => setThere(true)}
        onError={() => setGone(true)}
        onSeeked={({ currentTarget }) => {
          // While one seek was under way, the play may have gone on.
          const due = timeOf(step, currentTarget.duration, steps);
          if (Math.abs(currentTarget.currentTime - due) > 1e-3) currentTarget.currentTime = due;
        }}
      />
      <figcaption className="muted">as the network saw it</figcaption>
    </figure>
  );
}
