import { ActionIcon, Loader, NativeSelect, SegmentedControl, Slider } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { episodesQuery } from '@/api/runParts';
import type { Run } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { RunName } from '@/components/RunName';
import { formatClock, formatCount, formatScore } from '@/lib/format';
import classes from './replay.module.css';
import { videoQuery, videoUrl } from './video';

const MOST = 6;
const SPEEDS = [0.5, 1, 2, 4, 8];
/** What one key moves all of them by. */
const STEP_S = 0.1;

type Which = 'best' | 'newest';

/** Two to six agents playing on one time line. */
export function SideBySide({ runs }: { runs: readonly Run[] }) {
  const videos = useRef(new Map<string, HTMLVideoElement>());
  const [which, setWhich] = useState<Which>('best');
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [clock, setClock] = useState({ time_s: 0, duration_s: 0 });
  const shown = runs.slice(0, MOST);

  const attach = useCallback((run: string, element: HTMLVideoElement | null): void => {
    if (element) videos.current.set(run, element);
    else videos.current.delete(run);
  }, []);
  const all = (then: (video: HTMLVideoElement) => void): void => videos.current.forEach(then);
  const play = (on: boolean): void => {
    setPlaying(on);
    if (on && [...videos.current.values()].every(({ ended }) => ended)) seek(0);
    all((video) => {
      if (!on) video.pause();
      else if (!video.ended) void video.play().catch(() => undefined);
    });
  };
  const seek = (to_s: number): void => {
    const time_s = Math.max(0, Math.min(to_s, clock.duration_s));
    all((video) => {
      video.currentTime = Math.min(time_s, video.duration || 0);
      // One that had ended would stay there.
      if (playing && !video.ended) void video.play().catch(() => undefined);
    });
    setClock((before) => ({ ...before, time_s }));
  };
  const hasten = (to: number): void => {
    setSpeed(to);
    all((video) => (video.playbackRate = to));
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.altKey || event.metaKey) return; // the browser's own
    const target = event.target as HTMLElement;
    // A choice and a slider have their own keys, and a button its space.
    if (target.matches('select, input, [role=slider]') || (event.key === ' ' && target.matches('button')))
      return;
    if (event.key === ' ') play(!playing);
    else if (event.key === ',' || event.key === 'ArrowLeft') seek(clock.time_s - STEP_S);
    else if (event.key === '.' || event.key === 'ArrowRight') seek(clock.time_s + STEP_S);
    else if (/^[1-8]$/.test(event.key)) hasten(Number(event.key));
    else return;
    event.preventDefault();
  };

  useEffect(() => {
    if (!playing) return;
    let request = 0;
    const tick = (): void => {
      const found = [...videos.current.values()];
      const duration_s = Math.max(0, ...found.map((video) => video.duration || 0));
      const time_s = Math.max(0, ...found.map((video) => video.currentTime));
      setClock({ time_s, duration_s });
      if (found.every((video) => video.ended)) setPlaying(false);
      else request = requestAnimationFrame(tick);
    };
    request = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(request);
  }, [playing]);

  return (
    <div
      className={`panel ${classes.agent}`}
      role="group"
      aria-label="Episodes side by side"
      tabIndex={-1}
      onKeyDown={onKey}
    >
      <div className={classes.controls}>
        <ActionIcon
          variant="default"
          aria-label={playing ? 'Pause all' : 'Play all'}
          onClick={() => play(!playing)}
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
          size="xs"
          aria-label="Speed"
          value={String(speed)}
          data={[...new Set([...SPEEDS, speed])]
            .sort((a, b) => a - b)
            .map((each) => ({ value: String(each), label: `${each}×` }))}
          onChange={({ currentTarget }) => hasten(Number(currentTarget.value))}
        />
        <SegmentedControl
          size="xs"
          aria-label="Which episodes"
          value={which}
          data={[
            { value: 'best', label: 'Best' },
            { value: 'newest', label: 'Newest' },
          ]}
          onChange={(value) => {
            play(false);
            setWhich(value);
          }}
        />
      </div>
      <div className={classes.wall}>
        {shown.map((run) => (
          <Agent
            key={run.id}
            run={run}
            which={which}
            attach={attach}
            onLoaded={(video) => {
              video.playbackRate = speed;
              setClock((before) => ({ ...before, duration_s: Math.max(before.duration_s, video.duration) }));
            }}
          />
        ))}
      </div>
      {runs.length > MOST && (
        <span className="muted">
          The first {MOST} of {runs.length} runs.
        </span>
      )}
    </div>
  );
}

type AgentProps = {
  run: Run;
  which: Which;
  attach: (run: string, element: HTMLVideoElement | null) => void;
  onLoaded: (video: HTMLVideoElement) => void;
};

function Agent({ run, which, attach, onLoaded }: AgentProps) {
  const list = useInfiniteQuery(episodesQuery(run.id, which === 'best' ? '-episode_return' : '-agent_steps'));
  const newest = list.data?.pages[0]?.items[0];
  // What is shown stays while newer episodes come in.
  const [episode, setEpisode] = useState(newest);
  const [asked, setAsked] = useState(which);
  if ((!episode || asked !== which) && newest && !list.isPlaceholderData) {
    setEpisode(newest);
    setAsked(which);
  }
  const drawn = useQuery({ ...videoQuery(run.id, episode?.id ?? '', 0), enabled: episode !== undefined });
  const ref = useCallback((element: HTMLVideoElement | null) => attach(run.id, element), [attach, run.id]);
  return (
    <figure className={classes.seat}>
      <div className={classes.stage}>
        {drawn.error ? (
          <Problem error={drawn.error} />
        ) : episode && drawn.data === 'ready' ? (
          <video
            key={episode.id}
            ref={ref}
            src={videoUrl(episode.id)}
            muted
            playsInline
            preload="auto"
            aria-label={`Video of an episode of ${run.name}`}
            onLoadedMetadata={({ currentTarget }) => onLoaded(currentTarget)}
          />
        ) : list.isSuccess && !newest ? (
          'no episode kept yet'
        ) : (
          <span className="row" role="status">
            <Loader size={14} color="gray" /> drawing the video…
          </span>
        )}
      </div>
      <figcaption>
        <span className="ellipsis" title={run.name}>
          <RunName name={run.name} />
        </span>
        {episode && (
          <span className="muted">
            return <span className="num">{formatScore(episode.episode_return)}</span> after{' '}
            <span className="num">{formatCount(episode.agent_steps)}</span> agent steps
          </span>
        )}
      </figcaption>
    </figure>
  );
}
