import { expect, it } from 'vitest';
import type { Branch } from '@/api/branches';
import { shortName, verdict } from './words';

const policy = (action_values: boolean): Branch['policy'] => ({
  checkpoint: 'C',
  run_id: 'R',
  run_name: 'a',
  agent_steps: 100,
  action_values,
  gamma: 0.99,
  reward_clip: 1,
});

const outcome = (value: number | null, mean: number, half_interval: number | null, n = 16) =>
  ({
    value,
    discounted_return: { mean, half_interval },
    continuations: Array.from({ length: n }, () => ({})),
  }) as NonNullable<Branch['outcome']>;

it.each([
  [
    2.4,
    2,
    0.1,
    16,
    'V 2.40 beside a mean discounted return of 2.00 (95 % interval ±0.10) in 16 continuations: V is too high.',
  ],
  [
    1,
    2,
    0.25,
    8,
    'V 1.00 beside a mean discounted return of 2.00 (95 % interval ±0.25) in 8 continuations: V is too low.',
  ],
  [
    1,
    2,
    0.25,
    7,
    'V 1.00 beside a mean discounted return of 2.00 (95 % interval ±0.25): too few to compare (7 continuations, at least 8 are needed).',
  ],
  [
    2.09,
    2,
    0.1,
    16,
    'V 2.09 beside a mean discounted return of 2.00 (95 % interval ±0.10) in 16 continuations: no clear difference.',
  ],
  [
    3,
    2,
    0,
    2,
    'V 3.00 beside a mean discounted return of 2.00 (95 % interval ±0.00): too few to compare (2 continuations, at least 8 are needed).',
  ],
  [
    3,
    2,
    null,
    1,
    'V 3.00 beside a mean discounted return of 2.00: too few to compare (1 continuation, at least 8 are needed).',
  ],
  [
    100.5,
    100,
    0.0021234,
    16,
    'V 100.5 beside a mean discounted return of 100.0 (95 % interval ±0.002123) in 16 continuations: V is too high.',
  ],
  [null, 2, 0.1, 16, 'V or the returns are not finite.'],
])('a value of %s beside a mean of %s ± %s of %s is put in words', (value, mean, half, n, words) => {
  expect(verdict({ policy: policy(false), first_action: null }, outcome(value, mean, half, n))).toBe(words);
});

it('the expectation is named after what the agent learns', () => {
  const of = (first_action: number | null) =>
    verdict({ policy: policy(true), first_action }, outcome(1, 1, null)).split(' 1.00')[0];
  expect([of(null), of(2)]).toEqual(['max Q', 'Q']);
});

it('a branch is named by its decision as the replay counts it, from 1', () => {
  expect(shortName({ decision: 60, n_continuations: 4, horizon: 50 } as Branch)).toBe('Decision 61, 4 × 50');
});
