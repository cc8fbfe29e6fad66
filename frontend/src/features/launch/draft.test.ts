import { expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import { readSettings } from '@/lib/schema';
import { draftFrom, faultsText, newDraft, nRunsOf, problemsOf, type Catalogue, type Draft } from './draft';

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

const run = (stop: object, done: Partial<Run>): Run =>
  ({
    name: 'first',
    environment: 'CartPole-v1',
    algorithm: 'paac',
    tags: [],
    spec: { config: {}, environment_config: {}, stop },
    ...done,
  }) as unknown as Run;

const draft = (change: Partial<Draft>): Draft => ({
  ...newDraft({ algorithms: [], environments: [] }, {}),
  ...change,
});

it('counts one run a seed, and one where the number of seeds is refused', () => {
  expect(nRunsOf(draft({ nSeeds: '3' }))).toBe(3);
  for (const nSeeds of ['1000', '0', '1.5', 'abc', '']) expect(nRunsOf(draft({ nSeeds }))).toBe(1);
});

it.each([
  [{ tags: `short, ${'x'.repeat(51)}` }, 'tags', 'A tag has at most 50 characters; this has 51.'],
  [{ tags: 'a "word"' }, 'tags', 'A tag has no quotes and no backslashes.'],
  [
    { tags: Array.from({ length: 51 }, (_, n) => `t${n}`).join() },
    'tags',
    'A run has at most 50 tags; these are 51.',
  ],
  [{ name: 'x'.repeat(201) }, 'name', 'A name has at most 200 characters; this has 201.'],
  [{ notes: 'x'.repeat(20_001) }, 'notes', 'A note has at most 20,000 characters; this has 20,001.'],
])('tells of a limit before the service does', (change, field, message) => {
  expect(problemsOf([], draft(change))).toContainEqual({ field, message });
});

it('takes what just fits', () => {
  const fields = problemsOf([], draft({ tags: 'x'.repeat(50), name: '😀'.repeat(200) })).map(
    ({ field }) => field,
  );
  expect(fields).not.toContain('tags');
  expect(fields).not.toContain('name');
});

it('names each field at fault once, and tells what has no field', () => {
  const settings = readSettings(
    { properties: { agent_steps: { title: 'Agent steps', group: 'stopping', type: 'integer' } } },
    'stop',
  );
  const at = (...fields: string[]) =>
    faultsText(
      settings,
      fields.map((field) => ({ field, message: `bad ${field}` })),
    );
  expect(at('tags.0', 'tags.2', 'stop.agent_steps')).toBe('Another value is needed: Tags, Agent steps.');
  expect(at('stop')).toBe('Another value is needed: Stopping.');
  expect(at('environment', 'tags')).toBe('environment: bad environment Another value is needed: Tags.');
  expect(at('nSeeds')).toBe('bad nSeeds');
});

it('offers a fork of a finished run as much again, and leaves a bound that is not reached', () => {
  const ended = run({ agent_steps: 60_000, wall_time_s: 900 }, { agent_steps: 60_010, wall_time_s: 42.5 });
  expect(draftFrom(CATALOGUE, ended, 'fork').raw).toEqual({
    'stop.agent_steps': '120,010',
    'stop.wall_time_s': '900',
  });
  expect(draftFrom(CATALOGUE, ended, 'copy').raw['stop.agent_steps']).toBe('60,000');
  const timed = run({ wall_time_s: 30 }, { agent_steps: 10, wall_time_s: 30.2 });
  expect(draftFrom(CATALOGUE, timed, 'fork').raw).toEqual({ 'stop.wall_time_s': '61' });
});
