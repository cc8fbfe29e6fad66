import type { PlaySession } from '@/api/play';
import { DASH } from '@/lib/format';
import type { Status } from './stream';

type Recorded = Pick<PlaySession, 'source' | 'agent' | 'scripted'>;

/** The protocol of the present game, in words. Once another speed is chosen, its next frame makes it practice. */
export function recordedAs({ source, agent, scripted }: Recorded, status: Status | null): string {
  if (source !== null || agent !== null) return 'joint';
  if (scripted) return 'scripted';
  if (status === null) return 'human play';
  return status.practice || (status.speed !== 1 && !status.over) ? 'practice' : 'human play';
}

/** The name of the action that the latest decision has read. */
export function heldAction(names: readonly string[], status: Status | null): string {
  if (status === null) return DASH;
  return status.action === null ? 'none' : (names[status.action] ?? DASH);
}

type Moment = {
  session: PlaySession;
  ended: string | null;
  ready: boolean;
  paused: boolean;
  over: boolean;
  mine: boolean;
  hasAgent: boolean;
  agentActs: boolean;
  loading: boolean;
  reading: boolean;
  isSilent: boolean;
  started: boolean;
};

/** What stands over the game; null while it is played. */
export function noticeOf(moment: Moment): string | null {
  const { session, ended, ready, paused, over, mine, hasAgent, agentActs, isSilent, started } = moment;
  if (ended !== null || session.state === 'ended')
    return `The session has ended: ${ended ?? session.end_reason ?? ''}.${ready ? ' What was played is recorded.' : ''}`;
  if (session.state === 'queued') return `Waiting: ${session.waiting_reason ?? 'for a worker'}.`;
  if (isSilent) return 'No frame has come for some seconds: the worker is busy, or has died.';
  if (!ready) return 'The game is starting…';
  if (over) return mine ? 'The game is over. Press New game, or N.' : 'The game is over.';
  if (paused && mine && agentActs) return 'Paused. Press P to let the agent go on, or T to take over.';
  if (paused && mine) {
    const how = hasAgent ? ', or T to hand over to the agent' : '';
    return started ? `Paused. Press a control to go on${how}.` : `Press a control to start${how}.`;
  }
  if (paused) return 'Paused.';
  if (moment.loading) return 'The agent is being loaded, and then plays on…';
  return moment.reading ? 'The agent reads the game up to here, and then plays on…' : null;
}
