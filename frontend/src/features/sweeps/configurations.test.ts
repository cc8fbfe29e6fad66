import { describe, expect, it } from 'vitest';
import { bestConfigurations, nextSort, runsOf, sorted, standingOf } from './configurations';
import { actionsOf } from './sweepActions';
import { configurationCount, progressOf, runsByState } from './SweepState';
import { testConfiguration, testSweep } from './testSweep';

const low = testConfiguration(0, 0.1, [1, 2], { eliminated: 'worse than another after 2 seeds' });
const high = testConfiguration(1, 0.001, [30, null]);
const middle = testConfiguration(2, 0.01, [20, 22]);
const none = testConfiguration(3, 1, [null]);
const sweep = testSweep([low, high, middle, none], {
  best: { number: 1, settings: high.settings, iqm: 30 },
});

describe('sorted', () => {
  const order = (sort: string): number[] => sorted(sweep, sort).map(({ number }) => number);

  it('sorts by any column in both directions, those without a value last', () => {
    expect(order('-iqm')).toEqual([1, 2, 0, 3]);
    expect(order('iqm')).toEqual([0, 2, 1, 3]);
    expect(order('config.learning_rate')).toEqual([1, 2, 0, 3]);
    expect(order('-config.learning_rate')).toEqual([3, 0, 2, 1]);
    expect(order('-seeds')).toEqual([0, 2, 1, 3]);
    expect(order('-scores')).toEqual([1, 2, 0, 3]);
    expect(order('state')).toEqual([1, 2, 3, 0]);
  });

  it('keeps the order of an unknown column', () => expect(order('config.nothing')).toEqual([0, 1, 2, 3]));
});

it('nextSort begins with the highest scores, and reverses', () => {
  expect(nextSort('number', 'iqm')).toBe('-iqm');
  expect(nextSort('-iqm', 'iqm')).toBe('iqm');
  expect(nextSort('-iqm', 'config.n_e')).toBe('config.n_e');
  expect(nextSort('config.n_e', 'config.n_e')).toBe('-config.n_e');
});

it('standingOf names the best, racing and eliminated configurations', () => {
  expect([low, high, middle].map((configuration) => standingOf(sweep, configuration))).toEqual([
    'eliminated',
    'best',
    'racing',
  ]);
  expect(standingOf({ ...sweep, state: 'finished' }, middle)).toBe('not eliminated');
  expect(standingOf({ ...sweep, spec: { ...sweep.spec, racing: null } }, middle)).toBe('not raced');
});

it('runsOf the best configurations are finished runs of those that are not eliminated', () =>
  expect(runsOf(bestConfigurations(sweep))).toEqual(['R10', 'R20', 'R21']));

it('the state of a sweep counts its runs and configurations', () => {
  expect(runsByState(sweep)).toBe('1 running, 5 finished');
  expect(configurationCount(sweep)).toBe('3 of 4 still racing');
  expect(configurationCount({ ...sweep, state: 'stopped' })).toBe('3 of 4 not eliminated');
  expect(progressOf(sweep)).toEqual({ fraction: 5 / 32, text: '5 of at most 32 runs' });
  expect(progressOf({ ...sweep, state: 'finished', runs: { finished: 5 } })).toEqual({
    fraction: 1,
    text: '5 runs',
  });
});

it('actionsOf a sweep follow from its state', () => {
  const ids = (more: Partial<typeof sweep>) => actionsOf({ ...sweep, ...more }).map(({ id }) => id);
  expect(ids({})).toEqual(['stop', 'delete']);
  expect(actionsOf(sweep).at(-1)?.unavailable).toContain('stop it before');
  expect(ids({ state: 'finished' })).toEqual(['delete']);
  const failed = (configuration: typeof middle) => ({
    configurations: [
      { ...configuration, runs: configuration.runs.map((run) => ({ ...run, state: 'failed' as const })) },
    ],
  });
  expect(ids({ state: 'finished', ...failed(middle) })).toEqual(['retry', 'delete']);
  // A retry leaves those that are worse than another as they are.
  expect(ids({ state: 'finished', ...failed(low) })).toEqual(['delete']);
  expect(ids({ state: 'stopped' })).toEqual(['retry', 'delete']);
});

it('sorts configurations with seeds that broke off last by score', () => {
  const sweep = testSweep([
    testConfiguration(0, 0.1, [9, null], { n_broken_off: 1 }),
    testConfiguration(1, 0.2, [5, 5]),
    testConfiguration(2, 0.3, [7, 7]),
  ]);
  for (const [sort, numbers] of [
    ['-iqm', [2, 1, 0]],
    ['median', [1, 2, 0]],
    ['number', [0, 1, 2]],
  ] as const)
    expect(sorted(sweep, sort).map(({ number }) => number)).toEqual(numbers);
});
