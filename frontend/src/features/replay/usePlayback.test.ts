import { act, renderHook } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { stepAt, timeOf, usePlayback } from './usePlayback';

describe('stepAt and timeOf', () => {
  it('are inverse to each other', () => {
    for (let step = 0; step < 37; step += 1) expect(stepAt(timeOf(step, 12.3, 37), 12.3, 37)).toBe(step);
  });
  it('stepAt stays within the episode', () => {
    expect(stepAt(99, 10, 5)).toBe(4);
    expect(stepAt(-1, 10, 5)).toBe(0);
    expect(stepAt(1, NaN, 5)).toBe(0);
  });
});

it('usePlayback shows the step of the frame on screen, not that of the clock ahead of it', () => {
  const frames: VideoFrameRequestCallback[] = [];
  const video = Object.assign(document.createElement('video'), {
    requestVideoFrameCallback: (callback: VideoFrameRequestCallback) => frames.push(callback),
    cancelVideoFrameCallback: () => undefined,
  });
  const state = { paused: false, ended: false, duration: 10, currentTime: 0 };
  for (const name of ['paused', 'ended', 'duration', 'currentTime'] as const)
    Object.defineProperty(video, name, { get: () => state[name] });
  const { result } = renderHook(() => usePlayback(100, undefined));
  act(() => result.current.attach(video));
  act(() => void video.dispatchEvent(new Event('play')));
  state.currentTime = 5.4;
  act(() => frames.at(-1)?.(0, { mediaTime: 5.1 } as VideoFrameCallbackMetadata));
  act(() => void video.dispatchEvent(new Event('timeupdate')));
  expect(result.current.step).toBe(51);
  expect(result.current.time_s).toBe(5.4);
});

it('usePlayback plays at the chosen speed, also a video that comes later', () => {
  const { result } = renderHook(() => usePlayback(100, undefined));
  act(() => result.current.setSpeed(4));
  const video = document.createElement('video');
  act(() => result.current.attach(video));
  expect([video.playbackRate, video.defaultPlaybackRate]).toEqual([4, 4]);
  act(() => result.current.setSpeed(0.5));
  expect([video.playbackRate, video.defaultPlaybackRate]).toEqual([0.5, 0.5]);
});
