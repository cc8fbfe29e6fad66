import { describe, expect, it } from 'vitest';
import { axisOf, canBeLog, isLogByDefault, linearTicks, logTicks } from './scatterAxis';

const labels = (values: readonly unknown[], log: boolean, n = 5): string[] =>
  axisOf(values, log, n).ticks.map(({ label }) => label);

describe('the log scale', () => {
  it('needs numbers above 0', () => {
    expect(canBeLog([0.001, 10])).toBe(true);
    expect(canBeLog([0, 10])).toBe(false);
    expect(canBeLog([-1, 10])).toBe(false);
    expect(canBeLog(['adam', 'rmsprop'])).toBe(false);
    expect(canBeLog([])).toBe(false);
  });

  it('is the default of a wide range', () => {
    expect(isLogByDefault([0.001, 0.1])).toBe(true);
    expect(isLogByDefault([4, 8, 16])).toBe(false);
    expect(isLogByDefault([0, 100])).toBe(false);
  });

  it('puts equal ratios at equal distances', () => {
    const { at } = axisOf([0.001, 0.01, 0.1], true, 5);
    const [low, middle, high] = [at(0.001) ?? NaN, at(0.01) ?? NaN, at(0.1) ?? NaN];
    expect(middle).toBeCloseTo(0.5);
    expect(high - middle).toBeCloseTo(middle - low);
    expect(low).toBeGreaterThan(0);
    expect(high).toBeLessThan(1);
  });

  it('has ticks at powers of 10, and at 2 and 5 or 3 times them where there is room', () => {
    expect(logTicks([0.0009, 0.11], 10)).toEqual([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1]);
    expect(logTicks([0.0009, 0.11], 4)).toEqual([0.001, 0.003, 0.01, 0.03, 0.1]);
    expect(logTicks([0.0009, 0.11], 2)).toEqual([0.001, 0.01, 0.1]);
    expect(logTicks([1, 1e6], 3)).toEqual([1, 100, 1e4, 1e6]);
    expect(logTicks([6, 9], 3)).toEqual([6, 7, 8, 9]);
  });
});

describe('the linear scale', () => {
  it('has ticks at multiples of 1, 2 or 5', () => {
    expect(linearTicks([0, 1], 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearTicks([-3, 512], 5)).toEqual([0, 200, 400]);
    expect(labels([0, 500], false)).toEqual(['0', '200', '400']);
    expect(labels([0.0005, 0.0006], false, 2)).toEqual(['0.0005', '0.0006']);
  });

  it('centres a single value', () => expect(axisOf([7, 7], false, 5).at(7)).toBeCloseTo(0.5));
});

it('words are evenly spaced in their order', () => {
  const axis = axisOf(['adam', 'rmsprop', 'adam'], true, 5);
  expect(axis.ticks).toEqual([
    { at: 0.25, label: 'adam' },
    { at: 0.75, label: 'rmsprop' },
  ]);
  expect(axis.at('rmsprop')).toBe(0.75);
  expect(axis.at('sgd')).toBeNull();
  expect(axisOf([true, false], false, 5).ticks.map(({ label }) => label)).toEqual(['yes', 'no']);
});
