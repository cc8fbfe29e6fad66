import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import type { StartSet } from '@/api/startSets';
import { readFields } from '@/lib/schema';
import { draftFrom, newDraft, nSeedsOf, presetsOf, withStartSets, type Catalogue, type Draft } from './draft';

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

it('offers the protocols of the verified start sets of the environment', () => {
  const set = (name: string, environment: string, state: string) =>
    ({ environment, state, protocols: [`agent_starts:${name}@1`] }) as StartSet;
  const sets = [
    set('a', 'ALE/Pong-v5', 'ready'),
    set('b', 'ALE/Pong-v5', 'verifying'),
    set('c', 'ALE/Breakout-v5', 'ready'),
  ];
  const choice = { enum: ['auto'], default: 'auto' };
  const fields = readFields({ properties: { evaluation_protocol: choice, network: choice } }, 'config');
  const choices = (environment: string): string[][] =>
    withStartSets(fields, sets, environment).map((field) => field.choices);
  expect(choices('ALE/Pong-v5')).toEqual([['auto', 'agent_starts:a@1'], ['auto']]);
  expect(choices('CartPole-v1')).toEqual([['auto'], ['auto']]);
  expect(withStartSets(fields, undefined, 'ALE/Pong-v5')).toBe(fields);
});

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

describe('presetsOf', () => {
  const SETTINGS = { config: {}, environment_config: {}, stop: {} };
  const ANY = { ...SETTINGS, observation: 'vector', actions: [], families: [], environments: [] };
  const presets = [
    { ...ANY, id: 'any vector' },
    { ...ANY, id: 'pixels', observation: 'pixels' },
    { ...ANY, id: 'discrete', actions: ['discrete'] },
    { ...ANY, id: 'continuous', actions: ['continuous'] },
    { ...ANY, id: 'classic', families: ['classic', 'box2d'] },
    { ...ANY, id: 'atari', families: ['atari'] },
    { ...ANY, id: 'this one', environments: ['CartPole-v1'] },
    { ...ANY, id: 'another', environments: ['Acrobot-v1'] },
    // One condition that is not met is enough.
    { ...ANY, id: 'its pixels', observation: 'pixels', families: ['classic'], environments: ['CartPole-v1'] },
  ];
  const [algorithm] = CATALOGUE.algorithms;
  const [environment] = CATALOGUE.environments;
  const offered = (observation: string) => {
    const catalogue = {
      algorithms: [{ ...algorithm, observations: ['vector', 'pixels'], presets }],
      environments: [{ ...environment, family: 'classic', observation }],
    } as unknown as Catalogue;
    return presetsOf(catalogue, newDraft(catalogue, {})).map(({ id }) => id);
  };

  it('offers the presets whose every condition the environment meets', () =>
    expect(offered('vector')).toEqual(['any vector', 'discrete', 'classic', 'this one']));

  it('offers none that is for another kind of observation', () =>
    expect(offered('pixels')).toEqual(['pixels', 'its pixels']));
});

describe('newDraft', () => {
  const preset = (id: string) => ({
    ...{ id, observation: 'pixels', actions: [], families: [], environments: [] },
    ...{ config: { n_w: 2 }, environment_config: {}, stop: { agent_steps: 3 } },
  });
  const algorithm = (id: string, observations: string[]) => ({
    ...{ id, observations, actions: ['discrete'], config_schema: {}, defaults: {} },
    presets: [preset('full-frame-centred'), preset('compact-cropped')],
  });
  const environment = (id: string, observation = 'pixels') => ({
    ...{ id, observation, actions: 'discrete', family: 'atari', config_schema: {}, defaults: {} },
  });
  const catalogue = {
    algorithms: [algorithm('one_step_q', ['pixels', 'vector']), algorithm('paac', ['pixels', 'vector'])],
    environments: [
      environment('ALE/Alien-v5'),
      environment('ALE/Pong-v5'),
      environment('ALE/Breakout-v5'),
      environment('CartPole-v1', 'vector'),
    ],
  } as unknown as Catalogue;
  const chosen = (requested: { environment?: string; algorithm?: string }) => {
    const { environment, algorithm, preset, raw } = newDraft(catalogue, requested);
    return [environment, algorithm, preset, raw['stop.agent_steps']];
  };

  it.each([
    [{}, ['ALE/Pong-v5', 'paac', 'full-frame-centred', '3']],
    [{ environment: 'ALE/Breakout-v5' }, ['ALE/Breakout-v5', 'paac', 'full-frame-centred', '3']],
    [{ environment: 'CartPole-v1' }, ['CartPole-v1', 'paac', null, '1,000,000']],
  ])('opens %j on what the home offers', (requested, expected) => {
    expect(chosen(requested)).toEqual(expected);
  });

  it('opens on the first preset of another environment or algorithm', () => {
    expect(chosen({ environment: 'ALE/Alien-v5' })).toEqual([
      'ALE/Alien-v5',
      'one_step_q',
      'full-frame-centred',
      '3',
    ]);
    expect(chosen({ algorithm: 'one_step_q' })).toEqual([
      'ALE/Pong-v5',
      'one_step_q',
      'full-frame-centred',
      '3',
    ]);
  });
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

  it('cuts a long name between characters', () => {
    const name = `${'a'.repeat(194)}😀😀`;
    expect(draftFrom(CATALOGUE, { ...finished, name }, 'copy').name).toBe(`${'a'.repeat(194)}😀 copy`);
  });

  it('keeps the bounds of a cloned run', () =>
    expect(draftFrom(CATALOGUE, finished, 'copy').raw['stop.agent_steps']).toBe('60,000'));
});
