import { expect, it } from 'vitest';
import type { Branch } from '@/api/branches';
import { verdict } from './words';

const policy = (action_values: boolean): Branch['policy'] => ({
  checkpoint: 'C',
  run_id: 'R',
  run_name: 'a',
  agent_steps: 100,
  action_values,
  gamma: 0.99,
  reward_clip: 1,
});

const outcome = (value: number | null, mean: number, standard_error: number | null) => ({
  value,
  policy: [],
  discounted_return: { mean, standard_error },
  true_return: { mean: 0, standard_error: null },
  continuations: [],
});

it.each([
  [
    2.4,
    2,
    0.1,
    'V 2.40 beside a mean discounted return of 2.00 ± 0.10: V is too high by 4.00 standard errors.',
  ],
  [
    1,
    2,
    0.25,
    'V 1.00 beside a mean discounted return of 2.00 ± 0.25: V is too low by 4.00 standard errors.',
  ],
  [2.1, 2, 0.1, 'V 2.10 beside a mean discounted return of 2.00 ± 0.10: no clear difference.'],
  [3, 2, 0, 'V 3.00 beside a mean discounted return of 2.00 ± 0.00: V is too high.'],
  [3, 2, null, 'V 3.00 beside a mean discounted return of 2.00.'],
  [null, 2, 0.1, 'V or the returns are not finite.'],
])('a value of %s beside a mean of %s ± %s is put in words', (value, mean, error, words) => {
  expect(verdict({ policy: policy(false), first_action: null }, outcome(value, mean, error))).toBe(words);
});

it('the expectation is named after what the agent learns', () => {
  const of = (first_action: number | null) =>
    verdict({ policy: policy(true), first_action }, outcome(1, 1, null)).split(' 1.00')[0];
  expect([of(null), of(2)]).toEqual(['max Q', 'Q']);
});
