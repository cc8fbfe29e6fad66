import { expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { differing } from './ScoreScatter';
import { configDiff } from './Tables';

const run = (config: object, more: object = {}): Run =>
  ({
    spec: { algorithm: 'paac', environment: 'CartPole-v1', seed: 0, device: 'auto', config, ...more },
  }) as unknown as Run;

it('configDiff lists the values that differ and no others', () => {
  const found = configDiff([run({ n_e: 8, gamma: 0.99 }), run({ n_e: 16, gamma: 0.99 }, { seed: 1 })]);
  expect(found).toEqual([
    { path: 'seed', values: [0, 1] },
    { path: 'config.n_e', values: [8, 16] },
  ]);
});

it('configDiff includes a value that one run lacks', () => {
  expect(configDiff([run({ n_e: 8 }), run({})])).toEqual([{ path: 'config.n_e', values: [8, undefined] }]);
});

it('configDiff is empty for identical configs', () =>
  expect(configDiff([run({ n_e: 8 }), run({ n_e: 8 })])).toEqual([]));

it('differing names the settings of the algorithm first and the seed last', () => {
  const runs = [run({ n_e: 8 }, { device: 'cpu' }), run({ n_e: 16 }, { seed: 1 })];
  expect(differing(runs)).toEqual(['config.n_e', 'device', 'seed']);
});
