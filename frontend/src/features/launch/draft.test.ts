import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { draftFrom, newDraft, nSeedsOf, type Catalogue, type Draft } from './draft';

const CATALOGUE = {
  algorithms: [
    {
      id: 'paac',
      observations: ['vector'],
      actions: ['discrete'],
      presets: [],
      config_schema: {},
      defaults: {},
    },
  ],
  environments: [
    { id: 'CartPole-v1', observation: 'vector', actions: 'discrete', config_schema: {}, defaults: {} },
  ],
} as unknown as Catalogue;

const run = (stop: object, progress: Partial<Run>): Run =>
  ({
    name: 'first',
    environment: 'CartPole-v1',
    algorithm: 'paac',
    tags: [],
    spec: { config: {}, environment_config: {}, stop },
    ...progress,
  }) as unknown as Run;

describe('nSeedsOf', () => {
  const draft = (nSeeds: string): Draft => ({
    ...newDraft({ algorithms: [], environments: [] }, {}),
    nSeeds,
  });

  it('returns the number of seeds', () => expect(nSeedsOf(draft('3'))).toBe(3));
  it.each(['1000', '0', '1.5', 'abc', ''])('returns 1 for the invalid number "%s"', (nSeeds) =>
    expect(nSeedsOf(draft(nSeeds))).toBe(1),
  );
});

describe('draftFrom', () => {
  const finished = run({ agent_steps: 60_000, wall_time_s: 900 }, { agent_steps: 60_010, wall_time_s: 42.5 });

  it('extends a bound that a forked run has reached, and keeps the others', () => {
    expect(draftFrom(CATALOGUE, finished, 'fork').raw).toEqual({
      'stop.agent_steps': '120,010',
      'stop.wall_time_s': '900',
    });
    const timed = run({ wall_time_s: 30 }, { agent_steps: 10, wall_time_s: 30.2 });
    expect(draftFrom(CATALOGUE, timed, 'fork').raw).toEqual({ 'stop.wall_time_s': '61' });
  });

  it('keeps the bounds of a cloned run', () =>
    expect(draftFrom(CATALOGUE, finished, 'copy').raw['stop.agent_steps']).toBe('60,000'));
});
