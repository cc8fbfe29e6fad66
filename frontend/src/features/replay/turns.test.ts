import { expect, it } from 'vitest';
import { actorName, colourOf, spansOf } from './turns';

it('spansOf gives the first and last decision of each turn', () => {
  expect(
    spansOf([
      [1, 40],
      [0, 25],
      [1, 5],
    ]),
  ).toEqual([
    { actor: 1, start: 0, end: 40 },
    { actor: 0, start: 40, end: 65 },
    { actor: 1, start: 65, end: 70 },
  ]);
});

it('actorName names persons, scripts and agents, and who has been deleted', () => {
  expect(actorName({ kind: 'person', name: 'ada' })).toBe('ada');
  expect(actorName({ kind: 'script', name: 'ada' })).toBe('script of ada');
  expect(actorName({ kind: 'agent', name: 'pong-1', agent_steps: 20_000 })).toBe(
    'agent of pong-1 at 20,000 agent steps',
  );
  expect(actorName({ kind: 'agent', name: 'pong-1', agent_steps: 20_000, checkpoint_id: 'C' })).toBe(
    'agent of pong-1 at 20,000 agent steps (checkpoint)',
  );
  expect(actorName({ kind: 'agent', name: null })).toBe('agent of a deleted run');
});

it('colourOf gives the player a colour that nobody else has', () => {
  const others = [1, 2, 3, 4, 5].map(colourOf);
  expect(others).not.toContain(colourOf(0));
});
