import { useCallback, useEffect, useRef, useState } from 'react';

/** The step shown at `time_s` of a video of `duration_s`. */
export function stepAt(time_s: number, duration_s: number, steps: number): number {
  if (!(duration_s > 0) || steps < 1) return 0;
  return Math.min(steps - 1, Math.max(0, Math.floor((time_s / duration_s) * steps)));
}

/** Time by which a frame's own time may be rounded down. */
const ROUNDING_S = 1e-3;

/** The time at which a video shows `step`: the middle of its interval, so that rounding is harmless. */
export function timeOf(step: number, duration_s: number, steps: number): number {
  return steps < 1 ? 0 : ((step + 0.5) / steps) * duration_s;
}

export type Playback = {
  /** The ref callback for the video element. */
  attach: (element: HTMLVideoElement | null) => void;
  step: number;
  /** Whether a step has been requested: a video, also one that is still being rendered, then stays at it, paused. */
  hasSeeked: boolean;
  playing: boolean;
  speed: number;
  duration_s: number;
  time_s: number;
  toggle: () => void;
  seek: (step: number) => void;
  setSpeed: (speed: number) => void;
};

/** The video's events after which its state is read. */
const EVENTS = ['loadedmetadata', 'play', 'pause', 'ended', 'seeked', 'timeupdate'] as const;

/** Synchronises a video with the step it shows, starting at step `at` if given. */
export function usePlayback(steps: number, at: number | undefined): Playback {
  const video = useRef<HTMLVideoElement>(null);
  const [attached, setAttached] = useState(false);
  const [target, setTarget] = useState(at);
  const [step, setStep] = useState(Math.max(0, Math.min(at ?? 0, steps - 1)));
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [clock, setClock] = useState({ duration_s: 0, time_s: 0 });

  const attach = useCallback((element: HTMLVideoElement | null): void => {
    video.current = element;
    setAttached(element !== null);
  }, []);

  const update = useCallback((): void => {
    const element = video.current;
    if (!element) return;
    // While it plays, each frame sets its own step: the video's clock is ahead of the frame that is shown.
    if (element.paused || element.ended) setStep(stepAt(element.currentTime, element.duration, steps));
    setClock({ duration_s: element.duration || 0, time_s: element.currentTime });
    setPlaying(!element.paused && !element.ended);
  }, [steps]);

  useEffect(() => {
    const element = video.current;
    if (!attached || !element) return;
    const seekToTarget = (): void => {
      if (target !== undefined) element.currentTime = timeOf(target, element.duration, steps);
    };
    element.addEventListener('loadedmetadata', seekToTarget, { once: true });
    for (const event of EVENTS) element.addEventListener(event, update);
    return () => {
      element.removeEventListener('loadedmetadata', seekToTarget);
      for (const event of EVENTS) element.removeEventListener(event, update);
    };
  }, [attached, update, target, steps]);

  useEffect(() => {
    const element = video.current;
    if (!attached || !element) return;
    element.defaultPlaybackRate = speed; // which a new video starts with
    element.playbackRate = speed;
  }, [attached, speed]);

  useEffect(() => {
    const element = video.current;
    if (!playing || !element) return;
    let request = 0;
    const onFrame = (_now: number, { mediaTime }: VideoFrameCallbackMetadata): void => {
      setStep(stepAt(mediaTime + ROUNDING_S, element.duration, steps));
      update();
      request = element.requestVideoFrameCallback(onFrame);
    };
    request = element.requestVideoFrameCallback(onFrame);
    return () => element.cancelVideoFrameCallback(request);
  }, [playing, update, steps]);

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
      setTarget(to);
      element?.pause();
      if (element && element.duration > 0) element.currentTime = timeOf(to, element.duration, steps);
    },
    [steps],
  );
  return { attach, step, hasSeeked: target !== undefined, playing, speed, ...clock, toggle, seek, setSpeed };
}
