import { useCallback, useEffect, useRef, useState } from 'react';
import { stepAt, timeOf } from './envelope';

export type Playback = {
  /** Give it to the video as its ref. */
  attach: (element: HTMLVideoElement | null) => void;
  step: number;
  /** Whether someone looked for a decision: it waits there, also for a video that is still drawn. */
  sought: boolean;
  playing: boolean;
  speed: number;
  duration_s: number;
  time_s: number;
  toggle: () => void;
  seek: (step: number) => void;
  setSpeed: (speed: number) => void;
};

/** What a video tells of itself. */
const EVENTS = ['loadedmetadata', 'play', 'pause', 'ended', 'seeked', 'timeupdate'] as const;

/** A video and the decision it shows, kept in step with each other; it begins at decision `at`, if given. */
export function usePlayback(steps: number, at: number | undefined): Playback {
  const video = useRef<HTMLVideoElement>(null);
  const [attached, setAttached] = useState(false);
  const [wanted, setWanted] = useState(at);
  const [step, setStep] = useState(Math.max(0, Math.min(at ?? 0, steps - 1)));
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeedShown] = useState(1);
  const [clock, setClock] = useState({ duration_s: 0, time_s: 0 });

  const attach = useCallback((element: HTMLVideoElement | null): void => {
    video.current = element;
    setAttached(element !== null);
  }, []);

  const follow = useCallback((): void => {
    const element = video.current;
    if (!element) return;
    setStep(stepAt(element.currentTime, element.duration, steps));
    setClock({ duration_s: element.duration || 0, time_s: element.currentTime });
    setPlaying(!element.paused && !element.ended);
  }, [steps]);

  useEffect(() => {
    const element = video.current;
    if (!attached || !element) return;
    const begin = (): void => {
      if (wanted !== undefined) element.currentTime = timeOf(wanted, element.duration, steps);
    };
    element.addEventListener('loadedmetadata', begin, { once: true });
    for (const event of EVENTS) element.addEventListener(event, follow);
    return () => {
      element.removeEventListener('loadedmetadata', begin);
      for (const event of EVENTS) element.removeEventListener(event, follow);
    };
  }, [attached, follow, wanted, steps]);

  useEffect(() => {
    if (!playing) return;
    let request = 0;
    const tick = (): void => {
      follow();
      request = requestAnimationFrame(tick);
    };
    request = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(request);
  }, [playing, follow]);

  const toggle = useCallback((): void => {
    const element = video.current;
    if (!element) return;
    if (element.paused || element.ended) void element.play().catch(() => undefined);
    else element.pause();
  }, []);
  const seek = useCallback(
    (to: number): void => {
      const element = video.current;
      setStep(to);
      setWanted(to);
      // Who looks for a moment wants it to stay.
      element?.pause();
      if (element && element.duration > 0) element.currentTime = timeOf(to, element.duration, steps);
    },
    [steps],
  );
  const setSpeed = useCallback((to: number): void => {
    setSpeedShown(to);
    if (video.current) video.current.playbackRate = to;
  }, []);

  return { attach, step, sought: wanted !== undefined, playing, speed, ...clock, toggle, seek, setSpeed };
}
