import { expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { differencesOf } from './differences';

const run = (config: object, more: object = {}): Run =>
  ({
    spec: { algorithm: 'paac', environment: 'CartPole-v1', seed: 0, device: 'auto', config, ...more },
  }) as unknown as Run;

it('lists what differs and nothing else', () => {
  const found = differencesOf([run({ n_e: 8, gamma: 0.99 }), run({ n_e: 16, gamma: 0.99 }, { seed: 1 })]);
  expect(found).toEqual([
    { path: 'seed', values: [0, 1] },
    { path: 'config.n_e', values: [8, 16] },
  ]);
});

it('counts a setting that one run lacks', () => {
  expect(differencesOf([run({ n_e: 8 }), run({})])).toEqual([{ path: 'config.n_e', values: [8, undefined] }]);
});

it('finds none between copies', () => expect(differencesOf([run({ n_e: 8 }), run({ n_e: 8 })])).toEqual([]));
