import { expect, it } from 'vitest';
import { keyMetricsOf } from './keyMetrics';

const of = (...names: string[]): string[] => keyMetricsOf(new Set(names)).map(({ metric }) => metric);

it('the key metrics are those of the algorithm that were recorded, four at most', () => {
  const common = ['optim/learning_rate', 'rollout/episode_length', 'optim/grad_norm', 'speed/updates_per_s'];
  expect(of(...common, 'loss/policy', 'loss/value', 'loss/entropy')).toEqual([
    'loss/entropy',
    'loss/value',
    'loss/policy',
    'optim/grad_norm',
  ]);
  expect(of(...common, 'loss/td')).toEqual([
    'loss/td',
    'optim/grad_norm',
    'rollout/episode_length',
    'optim/learning_rate',
  ]);
  expect(of('mine')).toEqual([]);
});
