import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { stepsDone } from './steps';

const run = (learning_rate: number, seed: number, environment = 'CartPole-v1'): Run =>
  ({ algorithm: 'paac', environment, seed, spec: { config: { learning_rate } } }) as unknown as Run;

describe('stepsDone', () => {
  it('is none after the first run', () =>
    expect(stepsDone([run(1, 0)], [])).toEqual({ replay: false, rate: false, seeds: false, compare: false }));

  it('counts another learning rate in the same environment only', () => {
    expect(stepsDone([run(1, 0), run(2, 0, 'ALE/Pong-v5')], []).rate).toBe(false);
    expect(stepsDone([run(1, 0), run(2, 0)], []).rate).toBe(true);
  });

  it('counts five seeds of one config', () => {
    const four = [0, 1, 2, 3].map((seed) => run(1, seed));
    expect(stepsDone([...four, run(2, 4)], []).seeds).toBe(false);
    expect(stepsDone([...four, run(1, 3)], []).seeds).toBe(false);
    expect(stepsDone([...four, run(1, 4)], []).seeds).toBe(true);
  });

  it('takes replays and comparisons from what the browser remembers', () =>
    expect(stepsDone([run(1, 0)], ['replay', 'compare'])).toMatchObject({ replay: true, compare: true }));
});
