import { Button, NativeSelect } from '@mantine/core';
import { useDocumentVisibility } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState, type MouseEvent } from 'react';
import { keys } from '@/api/keys';
import { endPlaySession, type PlaySession } from '@/api/play';
import { ButtonLink } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { DASH, formatScore } from '@/lib/format';
import { ControlPad } from './ControlPad';
import { actionOf, controlsIn } from './controls';
import classes from './play.module.css';
import { useHeldControls } from './useHeldControls';
import { usePlayStream } from './usePlayStream';
import { heldAction, noticeOf, recordedAs } from './words';

const SPEEDS = [0.25, 0.5, 1, 2];
const REFETCH_MS = 3000;

type Props = {
  session: PlaySession;
  /** Whether the user is its player; others watch. */
  mine: boolean;
};

/** The game of a session: its frames, score and controls. */
/** The letter of a key, or, in other scripts, the one that stands there on a QWERTY keyboard. */
const letterOf = ({ key, code }: KeyboardEvent): string =>
  /^[a-z]$/i.test(key) ? key.toUpperCase() : code.replace('Key', '');

export function PlayView({ session, mine }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const client = useQueryClient();
  const { status, ended, refused, isSilent, connection, send } = usePlayStream(session.id, canvas);
  const [ending, setEnding] = useState<unknown>(null);
  const names = session.action_names;
  const controls = useMemo(() => controlsIn(names), [names]);
  const isOpen = ended === null && session.state !== 'ended';
  const { held, touch } = useHeldControls(mine && isOpen);
  const action = actionOf(names, held);
  const seq = useRef(0);
  const isReady = status !== null;

  // Also after a reconnection: what was pressed or released meanwhile did not arrive.
  useEffect(() => {
    if (!mine || !isReady) return;
    seq.current += 1;
    send({ type: 'action', action, seq: seq.current });
  }, [mine, isReady, connection, action, send]);

  // Nobody plays a game that they do not see.
  const visible = useDocumentVisibility() === 'visible';
  useEffect(() => {
    if (mine && !visible) send({ type: 'pause', paused: true });
  }, [mine, visible, send]);

  // Refetches the session, whose state is then ended, and the list, which then shows its games.
  useEffect(() => {
    if (ended === null) return;
    void client.invalidateQueries({ queryKey: keys.playSession(session.id) });
    void client.invalidateQueries({ queryKey: keys.recordings() });
  }, [ended, client, session.id]);

  // The end of a session whose worker has died arrives in no frame.
  const isSuspect = isOpen && session.state === 'running' && (isSilent || !isReady);
  useEffect(() => {
    if (!isSuspect) return undefined;
    const refetch = (): void => {
      void client.invalidateQueries({ queryKey: keys.playSession(session.id) });
    };
    const timer = setInterval(refetch, REFETCH_MS);
    return () => {
      clearInterval(timer);
      refetch(); // a refetch that has failed in the meantime would leave its error
    };
  }, [isSuspect, client, session.id]);

  const paused = status?.paused ?? false;
  const started = session.source !== null || (status?.frames ?? 0) > 0;
  const over = status?.over ?? false;
  const unavailable = status?.unavailable ?? null;
  const hasAgent = session.agent !== null;
  const canHandOver = hasAgent && unavailable === null;
  const agentActs = status?.acting === 'agent';
  const other = agentActs ? 'person' : 'agent';
  useEffect(() => {
    if (!mine || !isOpen) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as Element;
      if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || target.matches('input, select'))
        return;
      const key = letterOf(event);
      if (key === 'P' && !over) send({ type: 'pause', paused: !paused });
      else if (key === 'N') send({ type: 'new_game' });
      else if (key === 'T' && canHandOver && !over) send({ type: 'control', to: other });
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [mine, isOpen, paused, over, canHandOver, other, send]);

  const notice = noticeOf({
    session,
    ended,
    ready: isReady,
    paused,
    over,
    mine,
    hasAgent: canHandOver,
    agentActs,
    loading: status?.loading ?? false,
    reading: status?.reading ?? false,
    isSilent,
    started,
  });
  return (
    <div className={classes.game}>
      <div className={classes.stage}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Game of ${session.environment}`}
          hidden={!isReady}
          data-testid="game"
        />
        {notice !== null && (
          <div className={classes.notice} role="status">
            {notice}
          </div>
        )}
      </div>
      <div className={classes.side}>
        <div className={`panel ${classes.score}`}>
          <span className="muted">Score</span>
          <b className="num">{formatScore(status?.score)}</b>
          <dl className={classes.facts}>
            {(status?.lives ?? 0) > 0 && (
              <>
                <dt className={classes.brief}>Lives</dt>
                <dd className={`num ${classes.brief}`}>{status?.lives}</dd>
              </>
            )}
            <dt>Game</dt>
            <dd className="num">{status?.game ?? DASH}</dd>
            <dt>Action</dt>
            <dd className="mono">{heldAction(names, status)}</dd>
            {hasAgent && (
              <>
                <dt>Acting</dt>
                <dd>{agentActs ? 'agent' : session.player}</dd>
              </>
            )}
            <dt>Player</dt>
            <dd>{session.player}</dd>
            <dt className={classes.brief}>Recorded as</dt>
            <dd className={classes.brief}>{recordedAs(session, status)}</dd>
          </dl>
        </div>
        {unavailable !== null && <p role="alert">The agent cannot act in this game: {unavailable}</p>}
        {mine && isOpen && (
          <>
            {session.agent !== null && (
              <Button
                title="T"
                disabled={!isReady || over || !canHandOver}
                onClick={(event) => {
                  send({ type: 'control', to: other });
                  leave(event);
                }}
              >
                {agentActs ? 'Take over' : 'Hand over to the agent'}
              </Button>
            )}
            <ControlPad controls={controls} held={held} onTouch={touch} />
            <div className={classes.buttons}>
              <Button
                variant="default"
                title="P"
                disabled={!isReady || over}
                onClick={(event) => {
                  send({ type: 'pause', paused: !paused });
                  leave(event);
                }}
              >
                {paused ? (started ? 'Continue' : 'Start') : 'Pause'}
              </Button>
              <Button
                variant="default"
                title="N"
                disabled={!isReady}
                onClick={(event) => {
                  send({ type: 'new_game' });
                  leave(event);
                }}
              >
                New game
              </Button>
              <NativeSelect
                aria-label="Speed"
                title="A game at another speed than 1× is practice, and counts for no mean or start set"
                disabled={!isReady}
                value={String(status?.speed ?? 1)}
                data={SPEEDS.map((speed) => ({ value: String(speed), label: `${speed}×` }))}
                onChange={({ currentTarget }) => {
                  send({ type: 'speed', speed: Number(currentTarget.value) });
                  currentTarget.blur(); // its arrow keys would change the speed, not steer
                }}
              />
              <Button
                variant="default"
                onClick={() => {
                  send({ type: 'pause', paused: true });
                  void endPlaySession(session.id).then(() => {
                    setEnding(null);
                    return client.invalidateQueries({ queryKey: keys.playSession(session.id) });
                  }, setEnding);
                }}
              >
                End session
              </Button>
            </div>
          </>
        )}
        {!isOpen && (
          <ButtonLink to="/play" search={{ environment: session.environment }} variant="default">
            Play again
          </ButtonLink>
        )}
        {refused !== null && <p role="alert">Refused: {refused}</p>}
        {ending !== null && <Problem error={ending} />}
      </div>
    </div>
  );
}

/** Takes the focus from a button that a mouse or a finger has pressed, so that Space is the game's. */
const leave = ({ detail, currentTarget }: MouseEvent<HTMLButtonElement>): void => {
  if (detail > 0) currentTarget.blur();
};
