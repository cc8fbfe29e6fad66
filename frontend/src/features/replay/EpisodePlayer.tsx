import { ActionIcon, Button, Loader, NativeSelect } from '@mantine/core';
import { useReducedMotion, useWindowEvent } from '@mantine/hooks';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { traceQuery, type Episode } from '@/api/runParts';
import { Problem } from '@/components/feedback';
import { formatClock } from '@/lib/format';
import { lostLives } from './draw';
import { discounted } from './returns';
import { ActionNumbers } from './ActionNumbers';
import { Observations } from './Observations';
import { PolicyBars } from './PolicyBars';
import { QBars, rangeOfQ } from './QBars';
import classes from './replay.module.css';
import { toTrace } from './trace';
import { TraceLine } from './TraceLine';
import { usePlayback } from './usePlayback';
import { videoQuery, videoUrl } from './video';

type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'altKey' | 'metaKey' | 'target' | 'preventDefault'>;

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

type Props = {
  episode: Episode;
  onEnded?: () => void;
  /** How the run's learner discounts and clips, to show what V should have said. */
  learner?: { gamma: number; clip: number | null } | undefined;
  /** With room: the picture large, the policy beside it. */
  large?: boolean;
  /** The decision to begin at; it stays there. */
  at?: number | undefined;
  /** Is told the decision that was looked for. */
  onAt?: (step: number) => void;
};

/** An episode: its video, and under it what was earned and thought, in step with the picture. */
export function EpisodePlayer({ episode, onEnded, learner, large = false, at, onAt }: Props) {
  const [tries, setTries] = useState(0);
  const still = useReducedMotion();
  const drawn = useQuery(videoQuery(episode.run_id, episode.id, tries));
  const recorded = useQuery(traceQuery(episode.id));
  const trace = useMemo(() => recorded.data && toTrace(recorded.data), [recorded.data]);
  const { attach, step, sought, playing, speed, duration_s, time_s, toggle, setSpeed, ...playback } =
    usePlayback(trace?.actions.length ?? episode.length_steps, at);
  const seek = (to: number): void => {
    playback.seek(to);
    onAt?.(to);
  };
  const returns = useMemo(
    () => trace && learner && discounted(trace.rewards, learner.gamma, learner.clip),
    [trace, learner],
  );
  const qRange = useMemo(() => rangeOfQ(trace?.actionValues ? trace.policies : []), [trace]);
  const lost = useMemo(() => (trace ? lostLives(trace.lives) : []), [trace]);
  const nextLost = lost.find((at) => at > step) ?? lost[0];
  const ready = drawn.data === 'ready';

  const onKey = (event: Key): void => {
    if (event.ctrlKey || event.altKey || event.metaKey) return; // the browser's own
    const target = event.target as HTMLElement;
    // A select and a slider have their own keys, and a button its space.
    if (target.matches('select, [role=slider]') || (event.key === ' ' && target.matches('button'))) return;
    const last = (trace?.actions.length ?? episode.length_steps) - 1;
    if (event.key === ' ') toggle();
    else if (event.key === ',' || event.key === 'ArrowLeft') seek(Math.max(0, step - 1));
    else if (event.key === '.' || event.key === 'ArrowRight') seek(Math.min(last, step + 1));
    else if (/^[1-8]$/.test(event.key)) setSpeed(Number(event.key));
    else return;
    event.preventDefault();
  };
  // Large, it is what its page is for: its keys work before anything on it was clicked.
  useWindowEvent('keydown', (event) => large && event.target === document.body && onKey(event));

  const action = trace?.actions[step];
  return (
    <div
      className={large ? classes.large : classes.player}
      tabIndex={-1}
      onKeyDown={onKey}
      role="group"
      aria-label="Episode player"
    >
      {large && ready && (
        <Observations
          episode={episode.id}
          step={step}
          steps={trace?.actions.length ?? episode.length_steps}
        />
      )}
      <div className={classes.stage}>
        {drawn.isError ? (
          <div style={{ display: 'grid', gap: 8, padding: 12 }}>
            <Problem error={drawn.error} />
            <Button variant="default" onClick={() => setTries(tries + 1)}>
              Draw it again
            </Button>
          </div>
        ) : ready ? (
          <video
            ref={attach}
            src={videoUrl(episode.id)}
            muted
            playsInline
            autoPlay={!still && !sought}
            preload="auto"
            aria-label={`Video of the episode that ended at agent step ${episode.agent_steps}`}
            onEnded={onEnded}
            onClick={toggle}
          />
        ) : (
          <span className="row" role="status">
            <Loader size={14} color="gray" />
            {drawn.data === 'running' ? 'drawing the video…' : 'the video waits to be drawn…'}
          </span>
        )}
      </div>
      <div className={classes.controls}>
        <ActionIcon
          variant="default"
          disabled={!ready}
          onClick={toggle}
          aria-label={playing ? 'Pause' : 'Play'}
        >
          {playing ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
        </ActionIcon>
        <NativeSelect
          size="xs"
          aria-label="Speed"
          disabled={!ready}
          value={String(speed)}
          data={[...new Set([...SPEEDS, speed])]
            .sort((a, b) => a - b)
            .map((each) => ({ value: String(each), label: `${each}×` }))}
          onChange={({ currentTarget }) => setSpeed(Number(currentTarget.value))}
        />
        {nextLost !== undefined && (
          <Button variant="default" onClick={() => seek(nextLost)}>
            Next lost life
          </Button>
        )}
        <span className="num muted grow right">
          {formatClock(time_s)} / {formatClock(duration_s)}
        </span>
      </div>
      {recorded.isError && <Problem error={recorded.error} onRetry={() => void recorded.refetch()} />}
      {trace && (
        <>
          <TraceLine trace={trace} returns={returns} step={step} onSeek={seek} />
          {Array.isArray(action) ? (
            <ActionNumbers names={trace.actionNames} numbers={action} />
          ) : trace.actionValues ? (
            <QBars names={trace.actionNames} q={trace.policies[step] ?? []} range={qRange} chosen={action} />
          ) : (
            <PolicyBars names={trace.actionNames} policy={trace.policies[step] ?? []} chosen={action} />
          )}
        </>
      )}
    </div>
  );
}
