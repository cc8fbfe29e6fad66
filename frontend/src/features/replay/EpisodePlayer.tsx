import { isDialogOpen } from '@/lib/hooks';
import { ActionIcon, Button, Loader, NativeSelect } from '@mantine/core';
import { useReducedMotion, useWindowEvent } from '@mantine/hooks';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState, type CSSProperties, type ReactNode } from 'react';
import { useMediaUrl } from '@/api/session';
import { Problem } from '@/components/feedback';
import { formatClock } from '@/lib/format';
import { ActionComponents, ActionNames, PolicyBars, QBars, rangeOfQ } from './ActionBars';
import { jumpsOf, nextOf, valueErrors } from './jumps';
import { Observations } from './Observations';
import classes from './replay.module.css';
import type { Source } from './source';
import { Timeline } from './Timeline';
import { TurnsBar } from './TurnsBar';
import { discountedReturns, toTrace, type Learner } from './trace';
import { usePlayback } from './usePlayback';
import { isFailed, shapeOf, usualShapeOf, videoQueryAt } from './video';

type Key = Pick<
  KeyboardEvent,
  'key' | 'ctrlKey' | 'altKey' | 'metaKey' | 'shiftKey' | 'target' | 'preventDefault'
>;

/** The page itself and the parts of it that are focused when nothing in them is. */
const UNFOCUSED = 'body, main, section, header';

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

/** Heights of the replay page's timeline: of an agent's rewards, values and errors, or of rewards alone. */
const TIMELINE = { agent: 228, person: 102 };

type Props = {
  source: Source;
  /** The environment, from which the video's shape is guessed until the video is loaded. */
  environment?: string | undefined;
  onEnded?: () => void;
  /** The learner's discount and reward clipping, to compute the discounted return. */
  learner?: Learner | undefined;
  /** The layout of the replay page: a large video with the policy beside it. */
  large?: boolean;
  /** The step to start at, paused. */
  at?: number | undefined;
  /** Receives the step after each seek. */
  onAt?: (step: number) => void;
  /** What can be done at the step that is shown, below the controls. */
  atStep?: ((step: number) => ReactNode) | undefined;
};

/** The video of an episode or game with its rewards, values and policy at each step. */
export function EpisodePlayer({
  source,
  environment,
  onEnded,
  learner,
  large = false,
  at,
  onAt,
  atStep,
}: Props) {
  const root = useRef<HTMLDivElement>(null);
  const [retries, setRetries] = useState(0);
  const [loadedShape, setShape] = useState<number | null>(null);
  const shape = loadedShape ?? usualShapeOf(environment);
  const reducedMotion = useReducedMotion();
  const video = useQuery(videoQueryAt(source.videoKey, source.videoUrl, retries));
  const src = useMediaUrl(source.videoUrl, video.data === 'ready');
  const recording = useQuery({
    queryKey: source.traceKey,
    queryFn: ({ signal }) => source.readTrace(source.id, signal),
    staleTime: Infinity,
    gcTime: 60_000,
    structuralSharing: false,
  });
  const trace = useMemo(() => recording.data && toTrace(recording.data), [recording.data]);
  const { attach, step, hasSeeked, playing, speed, duration_s, time_s, toggle, setSpeed, ...playback } =
    usePlayback(trace?.actions.length ?? source.steps, at);
  const seek = (to: number): void => {
    playback.seek(to);
    onAt?.(to);
  };
  const returns = useMemo(
    () => trace && learner && discountedReturns(trace.rewards, trace.lives, learner, trace.bootstrap),
    [trace, learner],
  );
  const qRange = useMemo(() => rangeOfQ(trace?.actionValues ? trace.policies : []), [trace]);
  const errors = useMemo(() => trace && returns && valueErrors(trace.values, returns), [trace, returns]);
  const jumps = useMemo(() => trace && jumpsOf(trace, errors), [trace, errors]);
  const jump = (to: number | null | undefined): void => {
    if (to != null) seek(to);
  };
  const ready = video.data === 'ready';

  const onKey = (event: Key): void => {
    if (event.ctrlKey || event.altKey || event.metaKey) return; // shortcuts of the browser
    const target = event.target as HTMLElement;
    // Selects handle these keys themselves, sliders the arrows and buttons the space key.
    if (target.matches('select') || (event.key === ' ' && target.matches('button'))) return;
    if (target.matches('[role=slider]') && event.key.startsWith('Arrow')) return;
    const last = (trace?.actions.length ?? source.steps) - 1;
    if (event.key === ' ') toggle();
    else if (event.key === ',' || event.key === 'ArrowLeft') seek(Math.max(0, step - 1));
    else if (event.key === '.' || event.key === 'ArrowRight') seek(Math.min(last, step + 1));
    else if (/^[1-8]$/.test(event.key)) setSpeed(Number(event.key));
    else if (event.key.toLowerCase() === 'r') jump(nextOf(jumps?.rewards ?? [], step, event.shiftKey));
    else if (event.key.toLowerCase() === 'l') jump(nextOf(jumps?.lostLives ?? [], step, event.shiftKey));
    else if (event.key.toLowerCase() === 'e') jump(jumps?.largestError);
    else return;
    event.preventDefault();
  };
  // On the replay page the keys work without focusing the player first.
  useWindowEvent('keydown', (event) => {
    const target = event.target;
    if (!(target instanceof Element) || isDialogOpen()) return;
    // On a run's page the panel around the player may have the focus.
    if (large ? target.matches(UNFOCUSED) : target === root.current?.closest('section')) onKey(event);
  });

  const action = trace?.actions[step];
  return (
    <div
      className={large ? classes.large : classes.player}
      style={{ '--shape': shape } as CSSProperties}
      tabIndex={-1}
      // Events of its dialogs come here too, though they are elsewhere on the page.
      onKeyDown={(event) => event.currentTarget.contains(event.target as Node) && onKey(event)}
      role="group"
      aria-label="Episode player"
      ref={root}
    >
      <div className={classes.view}>
        <div className={classes.stage}>
          {isFailed(video) ? (
            <div className={classes.failure}>
              <Problem error={video.error} />
              <Button variant="default" onClick={() => setRetries(retries + 1)}>
                Render again
              </Button>
            </div>
          ) : ready ? (
            <video
              ref={attach}
              src={src}
              muted
              playsInline
              autoPlay={!reducedMotion && !hasSeeked}
              preload="auto"
              aria-label={source.label}
              onLoadedMetadata={({ currentTarget }) => setShape(shapeOf(currentTarget))}
              onEnded={onEnded}
              onClick={toggle}
            />
          ) : (
            <span className="row" role="status">
              <Loader size={14} color="gray" />
              {video.data === 'running' ? 'Rendering…' : 'Queued for rendering…'}
            </span>
          )}
        </div>
        <div className={classes.side}>
          {trace &&
            (Array.isArray(action) ? (
              <ActionComponents names={trace.actionNames} values={action} />
            ) : !source.byAgent ? (
              <ActionNames names={trace.actionNames} selected={action} />
            ) : trace.actionValues ? (
              <QBars
                names={trace.actionNames}
                q={trace.policies[step] ?? []}
                range={qRange}
                selected={action}
              />
            ) : (
              <PolicyBars names={trace.actionNames} policy={trace.policies[step] ?? []} selected={action} />
            ))}
          {ready && source.hasObservations && (
            <Observations
              episode={source.id}
              step={step}
              steps={trace?.actions.length ?? source.steps}
              playback={{ playing, speed, duration_s }}
            />
          )}
        </div>
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
          aria-label="Speed"
          disabled={!ready}
          value={String(speed)}
          data={[...new Set([...SPEEDS, speed])]
            .sort((a, b) => a - b)
            .map((rate) => ({ value: String(rate), label: `${rate}×` }))}
          onChange={({ currentTarget }) => setSpeed(Number(currentTarget.value))}
        />
        {jumps && jumps.rewards.length > 0 && (
          <Button
            variant="default"
            title="Next reward (R)"
            aria-label="Next reward"
            onClick={() => jump(nextOf(jumps.rewards, step))}
          >
            {large ? 'Next reward' : 'Reward'}
          </Button>
        )}
        {jumps && jumps.lostLives.length > 0 && (
          <Button
            variant="default"
            title="Next lost life (L)"
            aria-label="Next lost life"
            onClick={() => jump(nextOf(jumps.lostLives, step))}
          >
            {large ? 'Next lost life' : 'Lost life'}
          </Button>
        )}
        {typeof jumps?.largestError === 'number' && (
          <Button
            variant="default"
            title="Largest value error (E)"
            aria-label="Largest value error"
            onClick={() => jump(jumps.largestError)}
          >
            {large ? 'Largest value error' : 'Value error'}
          </Button>
        )}
        <span className={`num muted ${classes.time}`}>
          {formatClock(time_s)} / {formatClock(duration_s)}
        </span>
        {atStep?.(step)}
      </div>
      {recording.isError && <Problem error={recording.error} onRetry={() => void recording.refetch()} />}
      {!recording.isError && (
        <div
          className={classes.record}
          style={large ? { minHeight: source.byAgent ? TIMELINE.agent : TIMELINE.person } : {}}
        >
          {trace?.played && <TurnsBar played={trace.played} step={step} />}
          {trace && (
            <Timeline
              trace={trace}
              returns={returns}
              errors={errors}
              jumps={jumps}
              step={step}
              onSeek={seek}
              compact={!large}
              hasValues={source.byAgent}
              exported={large ? source.timeline : undefined}
            />
          )}
        </div>
      )}
    </div>
  );
}
