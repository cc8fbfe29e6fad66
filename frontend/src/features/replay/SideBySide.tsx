import { ActionIcon, Button, NativeSelect, SegmentedControl, Slider, TextInput } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useCallback, useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { Run } from '@/api/runs';
import { formatClock, formatInteger, parseNumber } from '@/lib/format';
import classes from './replay.module.css';
import { SideTile, type Selection } from './SideTile';

const MAX_RUNS = 6;
const SPEEDS = [0.5, 1, 2, 4, 8];
/** The distance of one key press. */
const STEP_S = 0.1;

type Mode = 'best' | 'latest' | 'equal';

/** The agent step that every run has reached: the proposed one for episodes at an equal training step. */
const commonStep = (runs: readonly Run[]): number => Math.min(...runs.map(({ agent_steps }) => agent_steps));

type Props = {
  runs: readonly Run[];
  /** What a run is called on the page. */
  nameOf: (run: Run) => string;
};

/** Replays of up to six runs on one timeline. */
export function SideBySide({ runs, nameOf }: Props) {
  const videos = useRef(new Map<string, HTMLVideoElement>());
  const [mode, setMode] = useState<Mode>('best');
  const [typedStep, setTypedStep] = useState<string | null>(null);
  const [page, setPage] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [clock, setClock] = useState({ time_s: 0, duration_s: 0 });
  const nPages = Math.max(1, Math.ceil(runs.length / MAX_RUNS));
  const first = Math.min(page, nPages - 1) * MAX_RUNS;
  const shown = runs.slice(first, first + MAX_RUNS);
  const stepText = typedStep ?? formatInteger(commonStep(runs));
  const step = parseNumber(stepText);
  const isStep = Number.isSafeInteger(step) && step >= 0;
  const selection: Selection = mode === 'equal' ? { at: isStep ? step : commonStep(runs) } : mode;

  /** Sets the clock from the videos that are shown. */
  const measure = useCallback((): void => {
    const all = [...videos.current.values()];
    const duration_s = Math.max(0, ...all.map((video) => video.duration || 0));
    const time_s = Math.max(0, ...all.map((video) => video.currentTime));
    setClock({ time_s, duration_s });
  }, []);
  const attach = useCallback(
    (run: string, element: HTMLVideoElement | null): void => {
      if (element) videos.current.set(run, element);
      else {
        videos.current.delete(run);
        measure();
      }
    },
    [measure],
  );
  const forEachVideo = (action: (video: HTMLVideoElement) => void): void => videos.current.forEach(action);
  const setPlayback = (play: boolean): void => {
    setPlaying(play);
    if (play && [...videos.current.values()].every(({ ended }) => ended)) seek(0);
    forEachVideo((video) => {
      if (!play) video.pause();
      else if (!video.ended) void video.play().catch(() => undefined);
    });
  };
  const seek = (to_s: number): void => {
    const time_s = Math.max(0, Math.min(to_s, clock.duration_s));
    forEachVideo((video) => seekVideo(video, time_s));
    setClock((before) => ({ ...before, time_s }));
  };
  const seekVideo = (video: HTMLVideoElement, time_s: number): void => {
    video.currentTime = Math.min(time_s, video.duration || 0);
    // A video that had ended does not resume by itself, nor does a new one start.
    if (playing && !video.ended) void video.play().catch(() => undefined);
  };
  const turn = (by: number): void => {
    setPlayback(false);
    setClock({ time_s: 0, duration_s: 0 });
    setPage(first / MAX_RUNS + by);
  };
  const changeSpeed = (to: number): void => {
    setSpeed(to);
    forEachVideo((video) => (video.playbackRate = to));
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.altKey || event.metaKey) return; // shortcuts of the browser
    const target = event.target as HTMLElement;
    // Inputs and sliders handle these keys themselves, and buttons the space key.
    if (target.matches('select, input, [role=slider]') || (event.key === ' ' && target.matches('button')))
      return;
    if (event.key === ' ') setPlayback(!playing);
    else if (event.key === ',' || event.key === 'ArrowLeft') seek(clock.time_s - STEP_S);
    else if (event.key === '.' || event.key === 'ArrowRight') seek(clock.time_s + STEP_S);
    else if (/^[1-8]$/.test(event.key)) changeSpeed(Number(event.key));
    else return;
    event.preventDefault();
  };

  useEffect(() => {
    if (!playing) return;
    let request = 0;
    const tick = (): void => {
      measure();
      if ([...videos.current.values()].every((video) => video.ended)) setPlaying(false);
      else request = requestAnimationFrame(tick);
    };
    request = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(request);
  }, [playing, measure]);

  return (
    <div
      className={`panel ${classes.agent}`}
      role="group"
      aria-label="Side-by-side replay"
      tabIndex={-1}
      onKeyDown={onKey}
    >
      <div className={classes.controls}>
        <ActionIcon
          variant="default"
          aria-label={playing ? 'Pause all' : 'Play all'}
          onClick={() => setPlayback(!playing)}
        >
          {playing ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
        </ActionIcon>
        <Slider
          size="xs"
          className="grow"
          label={formatClock}
          min={0}
          max={Math.max(1, clock.duration_s)}
          step={STEP_S}
          value={clock.time_s}
          onChange={seek}
          thumbLabel="Time"
        />
        <span className="num muted">
          {formatClock(clock.time_s)} / {formatClock(clock.duration_s)}
        </span>
        <NativeSelect
          aria-label="Speed"
          value={String(speed)}
          data={[...new Set([...SPEEDS, speed])]
            .sort((a, b) => a - b)
            .map((rate) => ({ value: String(rate), label: `${rate}×` }))}
          onChange={({ currentTarget }) => changeSpeed(Number(currentTarget.value))}
        />
        <SegmentedControl
          size="xs"
          aria-label="Episodes"
          value={mode}
          data={[
            { value: 'best', label: 'Best recorded' },
            { value: 'latest', label: 'Latest' },
            { value: 'equal', label: 'Equal training step' },
          ]}
          onChange={(value) => {
            seek(0);
            setPlayback(false);
            setMode(value);
            // It stays the same while the runs train.
            setTypedStep(formatInteger(commonStep(runs)));
          }}
        />
        {mode === 'equal' && (
          <TextInput
            w={136}
            inputMode="numeric"
            aria-label="Training step, in agent steps"
            title="Of each run, the last recorded episode that ended at this agent step or before."
            classNames={{ input: 'num' }}
            rightSection={<span className="muted">steps</span>}
            rightSectionWidth={44}
            value={stepText}
            error={!isStep}
            onChange={({ currentTarget }) => setTypedStep(currentTarget.value)}
          />
        )}
      </div>
      <div className={classes.tiles}>
        {shown.map((run) => (
          <SideTile
            key={run.id}
            run={run}
            name={nameOf(run)}
            selection={selection}
            attach={attach}
            onLoaded={(video) => {
              video.playbackRate = speed;
              seekVideo(video, clock.time_s);
              measure();
            }}
          />
        ))}
      </div>
      {nPages > 1 && (
        <div className="row">
          <span className="muted" role="status">
            Runs {first + 1} to {first + shown.length} of {runs.length}
          </span>
          <Button variant="default" disabled={first === 0} onClick={() => turn(-1)}>
            Previous
          </Button>
          <Button variant="default" disabled={first + MAX_RUNS >= runs.length} onClick={() => turn(1)}>
            Next
          </Button>
        </div>
      )}
    </div>
  );
}
