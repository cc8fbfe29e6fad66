import { describe, expect, it } from 'vitest';
import { parseNumber } from './number';
import { allSettings, boundsText, isChanged, parseRaw, readSettings, toRaw, type Setting } from './schema';

const SCHEMA = {
  properties: {
    n_e: {
      default: 32,
      description: 'Environments stepped together.',
      group: 'parallelism',
      maximum: 512,
      minimum: 1,
      symbol: 'nₑ',
      title: 'Environments',
      type: 'integer',
    },
    learning_rate: {
      default: 0.0224,
      exclusiveMinimum: 0,
      maximum: 10,
      title: 'Learning rate',
      type: 'number',
    },
    network: { default: 'nips', enum: ['nips', 'nature'], title: 'Network', type: 'string' },
    agent_steps: {
      anyOf: [{ maximum: 1_000_000_000_000, minimum: 1, type: 'integer' }, { type: 'null' }],
      default: null,
      title: 'Agent steps',
    },
  },
};

function field(key: string, defaults = {}): Setting {
  const found = readSettings(SCHEMA, 'config', defaults).find((setting) => setting.key === key);
  if (!found) throw new Error(`no field ${key}`);
  return found;
}

describe('readSettings', () => {
  it('takes name, symbol, bounds and default from the schema', () => {
    expect(field('n_e')).toMatchObject({
      path: 'config.n_e',
      title: 'Environments',
      symbol: 'nₑ',
      kind: 'integer',
      min: 1,
      max: 512,
      fallback: 32,
      group: 'parallelism',
    });
  });

  it('lets defaults of a kind of world stand in', () => expect(field('n_e', { n_e: 16 }).fallback).toBe(16));

  it('reads an optional bound', () => {
    expect(field('agent_steps')).toMatchObject({ kind: 'integer', optional: true, min: 1, fallback: null });
  });
});

it('gives the settings group after group, the world’s first and those of stopping last', () => {
  const of = (...groups: string[]) => ({
    properties: Object.fromEntries(groups.map((group, at) => [`${group}_${at}`, { group, type: 'integer' }])),
  });
  const algorithm = {
    config_schema: of('evaluation', 'network', 'unheard', 'optimisation', 'network'),
    defaults: {},
  };
  const world = { config_schema: of('environment'), defaults: {}, observation: 'vector' };
  const groups = allSettings(algorithm, world, of('stopping')).map(({ group }) => group);
  expect(groups).toEqual([
    'environment',
    'network',
    'network',
    'optimisation',
    'evaluation',
    'stopping',
    'unheard',
  ]);
});

describe('parseRaw', () => {
  it.each([
    ['n_e', '0', 'Must be 1 to 512.'],
    ['n_e', '1000000000', 'Must be 1 to 512.'],
    ['n_e', '1.5', 'Give a whole number.'],
    ['n_e', 'many', 'Give a number.'],
    ['n_e', '', 'Give a value.'],
    ['learning_rate', '0,001', 'Give a number; decimals follow a point.'],
    ['learning_rate', '0', 'Must be above 0, at most 10.'],
    ['network', 'large', 'Choose one of nips, nature.'],
  ])('%s = %s is refused', (key, raw, problem) => expect(parseRaw(field(key), raw).problem).toBe(problem));

  it.each([
    ['n_e', '512', 512],
    ['learning_rate', '1e-4', 0.0001],
    ['agent_steps', '6,000,000', 6_000_000],
    ['agent_steps', '', null],
    ['network', 'nature', 'nature'],
  ])('%s = %s is taken', (key, raw, value) =>
    expect(parseRaw(field(key), raw)).toEqual({ value, problem: null }),
  );
});

it('tells what differs from the default', () => {
  expect(isChanged(field('n_e'), '32')).toBe(false);
  expect(isChanged(field('n_e'), ' 32 ')).toBe(false);
  expect(isChanged(field('n_e'), '33')).toBe(true);
  expect(isChanged(field('n_e'), 'x')).toBe(true);
});

it('types values as people do', () => {
  expect(toRaw(6_000_000)).toBe('6,000,000');
  expect(toRaw(0.00001)).toBe('0.00001');
  expect(parseNumber(String(toRaw(6_000_000)))).toBe(6_000_000);
});

it('says bounds in words', () => {
  expect(boundsText(field('n_e'))).toBe('1 to 512');
  expect(boundsText(field('agent_steps'))).toBe('1 to 1e12');
});
