import { expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { annealingChange } from './ActionDialog';

const run = (schedule: string, more: object = {}): Run =>
  ({
    agent_steps: 750,
    spec: { config: { learning_rate_schedule: schedule }, stop: { agent_steps: 1_000 }, ...more },
  }) as unknown as Run;

it('shows what both choices do to an annealed learning rate', () =>
  expect(annealingChange(run('linear'), 3_000)).toEqual({
    over: 1_000,
    extended: 'It changes immediately from 25 % to 75 % of its initial value.',
    kept: 'It continues from 25 %; from 1,000 agent steps on it is 0, and nothing is learned.',
  }));

it('counts from a schedule that was kept before', () =>
  expect(annealingChange(run('linear', { annealing_agent_steps: 7_500 }), 3_000)).toEqual({
    over: 7_500,
    extended: 'It changes immediately from 90 % to 75 % of its initial value.',
    kept: 'It continues from 90 %.',
  }));

it.each([
  ['a constant learning rate', run('constant'), 3_000],
  ['the same limit', run('linear'), 1_000],
])('offers no choice with %s', (_, run, bound) => expect(annealingChange(run, bound)).toBeNull());
