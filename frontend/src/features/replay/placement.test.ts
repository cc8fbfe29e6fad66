import { expect, it } from 'vitest';
import { evenly, spreadOut, xOf } from './placement';

it('frames stand over their places where there is room', () => {
  expect(spreadOut([50, 150, 300], 60, 6, 400)).toEqual([20, 120, 270]);
});

it('frames that would overlap are moved apart, in their order and inside the strip', () => {
  expect(spreadOut([50, 60, 70], 60, 6, 400)).toEqual([20, 86, 152]);
  expect(spreadOut([380, 390, 400], 60, 6, 400)).toEqual([208, 274, 340]);
  expect(spreadOut([0], 60, 6, 400)).toEqual([0]);
  expect(spreadOut([], 60, 6, 400)).toEqual([]);
});

it('an episode has a place on axes that it has a value of', () => {
  const episode = { agent_steps: 10, frames: 40, wall_time_s: 2.5 };
  expect(xOf(episode, 'agent_steps')).toBe(10);
  expect(xOf(episode, 'frames')).toBe(40);
  expect(xOf(episode, 'wall_time_s')).toBe(2.5);
  expect(xOf(episode, 'updates')).toBeUndefined();
  expect(evenly(2, { left: 10, width: 100, range: [0, 1] })).toEqual([35, 85]);
});
