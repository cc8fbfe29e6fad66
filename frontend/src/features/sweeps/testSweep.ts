import type { Configuration, SweepDetail } from '@/api/sweeps';

/** A configuration with a learning rate, whose seeds have these scores; null: not finished. */
export function testConfiguration(
  number: number,
  rate: number,
  scores: readonly (number | null)[],
  more: Partial<Configuration> = {},
): Configuration {
  const finished = scores.filter((score) => score !== null);
  const mean = finished.reduce((sum, score) => sum + score, 0) / finished.length;
  return {
    number,
    name: `lr ${rate}`,
    settings: { 'config.learning_rate': rate },
    eliminated: null,
    n_broken_off: 0,
    n: finished.length,
    iqm: finished.length > 0 ? mean : null,
    median: finished.length > 0 ? { value: mean, low: null, high: null } : null,
    runs: scores.map((score, seed) => ({
      run: `R${number}${seed}`,
      seed,
      state: score === null ? 'running' : 'finished',
      score,
    })),
    ...more,
  };
}

/** A running sweep over the learning rate. */
export function testSweep(configurations: Configuration[], more: Partial<SweepDetail> = {}): SweepDetail {
  const sweep: Partial<SweepDetail> = {
    id: 'S',
    name: 'rates',
    state: 'running',
    state_reason: 'created',
    algorithm: 'paac',
    environment: 'CartPole-v1',
    n_configurations: configurations.length,
    n_active: configurations.filter(({ eliminated }) => eliminated === null).length,
    runs: { finished: 5, running: 1 },
    spec: {
      space: { 'config.learning_rate': { values: [0.001, 0.01, 0.1], distribution: 'uniform' } },
      run: {},
      racing: { confidence: 0.95, initial_seeds: 3 },
      max_seeds: 10,
      budget: {},
      objective: 'training',
    } as unknown as SweepDetail['spec'],
    best: null,
    n_planned: 30,
    n_not_needed: 8,
    configurations,
    ...more,
  };
  return sweep as SweepDetail;
}
