import { expect, it } from 'vitest';
import type { PlaySession } from '@/api/play';
import type { Status } from './stream';
import { noticeOf, recordedAs } from './words';

const status = (changes: Partial<Status>): Status => ({
  score: 0,
  lives: 3,
  frames: 0,
  action: null,
  paused: true,
  over: false,
  speed: 1,
  practice: false,
  game: 2,
  acting: 'person',
  loading: false,
  reading: false,
  unavailable: null,
  seq: 0,
  ...changes,
});

const ALONE = { source: null, agent: null, scripted: false };
const AGENT = { run_id: 'R', checkpoint_id: 'C', agent_steps: 100 } as PlaySession['agent'];

it.each([
  ['a game that starts', ALONE, null, 'human play'],
  ['a game at the speed of the console', ALONE, status({}), 'human play'],
  ['a game of which a part was played at another speed', ALONE, status({ practice: true }), 'practice'],
  ['the next game at the speed that was chosen in the one before', ALONE, status({ speed: 2 }), 'practice'],
  ['another speed chosen after the end of a game', ALONE, status({ speed: 2, over: true }), 'human play'],
  ['a game of a script', { ...ALONE, scripted: true }, status({ speed: 2 }), 'scripted'],
  ['a game in which an agent can act', { ...ALONE, agent: AGENT }, status({ practice: true }), 'joint'],
])('%s is marked as what is recorded', (_, session, shown, words) => {
  expect(recordedAs(session, shown)).toBe(words);
});

it('says that the agent is loaded, and reads the game, before it plays on', () => {
  const moment = {
    session: { state: 'running' } as PlaySession,
    ended: null,
    ready: true,
    paused: false,
    over: false,
    mine: true,
    hasAgent: true,
    agentActs: true,
    loading: false,
    reading: true,
    isSilent: false,
    started: true,
  };
  expect(noticeOf(moment)).toContain('The agent reads the game up to here');
  expect(noticeOf({ ...moment, paused: true })).toContain('Paused.');
  const loading = { ...moment, reading: false, loading: true };
  expect(noticeOf(loading)).toBe('The agent is being loaded, and then plays on…');
  expect(noticeOf({ ...loading, paused: true })).toContain('Paused.');
  expect(noticeOf({ ...moment, reading: false })).toBeNull();
  expect(noticeOf({ ...moment, ended: 'no checkpoint' })).toBe(
    'The session has ended: no checkpoint. What was played is recorded.',
  );
});
