import { describe, expect, it } from 'vitest';
import { parseNumber } from './format';
import { allFields, boundsText, isChanged, parseRaw, readFields, toRaw, type ConfigField } from './schema';

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

function field(key: string, defaults = {}): ConfigField {
  const field = readFields(SCHEMA, 'config', defaults).find((candidate) => candidate.key === key);
  if (!field) throw new Error(`no field ${key}`);
  return field;
}

describe('readFields', () => {
  it('takes choices that are not listed but match a pattern', () => {
    const anyOf = [
      { type: 'string', enum: ['auto', 'plain'] },
      { type: 'string', pattern: '^agent_starts:[a-z]+$' },
    ];
    const [protocol] = readFields({ properties: { protocol: { anyOf, default: 'auto' } } }, 'config');
    if (!protocol) throw new Error('no field');
    expect(protocol).toMatchObject({ kind: 'choice', choices: ['auto', 'plain'], optional: false });
    expect(parseRaw(protocol, 'agent_starts:pong')).toEqual({ value: 'agent_starts:pong', error: null });
    expect(parseRaw(protocol, 'agent_starts:').error).toBe('Choose one of auto, plain.');
    expect(parseRaw(field('network'), 'agent_starts:pong').error).toBe('Choose one of nips, nature.');
  });

  it('reads title, symbol, bounds and default of a property', () => {
    expect(field('n_e')).toMatchObject({
      path: 'config.n_e',
      title: 'Environments',
      symbol: 'nₑ',
      kind: 'integer',
      min: 1,
      max: 512,
      default: 32,
      group: 'parallelism',
    });
  });

  it('prefers the given defaults to the schema’s', () => expect(field('n_e', { n_e: 16 }).default).toBe(16));

  it('reads `anyOf` with null as an optional field', () => {
    expect(field('agent_steps')).toMatchObject({ kind: 'integer', optional: true, min: 1, default: null });
  });
});

it('allFields sorts by group: environment first, stopping last, unknown groups after it', () => {
  const schemaOf = (...groups: string[]) => ({
    properties: Object.fromEntries(groups.map((group, at) => [`${group}_${at}`, { group, type: 'integer' }])),
  });
  const algorithm = {
    config_schema: schemaOf('evaluation', 'network', 'unknown', 'optimisation', 'network'),
    defaults: {},
  };
  const environment = { config_schema: schemaOf('environment'), defaults: {}, observation: 'vector' };
  const groups = allFields(algorithm, environment, schemaOf('stopping')).map(({ group }) => group);
  expect(groups).toEqual([
    'environment',
    'network',
    'network',
    'optimisation',
    'evaluation',
    'stopping',
    'unknown',
  ]);
});

describe('parseRaw', () => {
  it.each([
    ['n_e', '0', 'Must be 1 to 512.'],
    ['n_e', '1000000000', 'Must be 1 to 512.'],
    ['n_e', '1.5', 'Enter a whole number.'],
    ['n_e', 'many', 'Enter a number.'],
    ['n_e', '', 'Enter a value.'],
    ['learning_rate', '0,001', 'Enter a number with a decimal point, not a comma.'],
    ['learning_rate', '0', 'Must be above 0, at most 10.'],
    ['network', 'large', 'Choose one of nips, nature.'],
  ])('rejects %s = "%s"', (key, raw, error) => expect(parseRaw(field(key), raw).error).toBe(error));

  it.each([
    ['n_e', '512', 512],
    ['learning_rate', '1e-4', 0.0001],
    ['agent_steps', '6,000,000', 6_000_000],
    ['agent_steps', '', null],
    ['network', 'nature', 'nature'],
  ])('accepts %s = "%s"', (key, raw, value) =>
    expect(parseRaw(field(key), raw)).toEqual({ value, error: null }),
  );
});

it('isChanged compares the parsed value with the default', () => {
  expect(isChanged(field('n_e'), '32')).toBe(false);
  expect(isChanged(field('n_e'), ' 32 ')).toBe(false);
  expect(isChanged(field('n_e'), '33')).toBe(true);
  expect(isChanged(field('n_e'), 'x')).toBe(true);
});

it('toRaw adds thousands separators and parses back to the same number', () => {
  expect(toRaw(6_000_000)).toBe('6,000,000');
  expect(toRaw(0.00001)).toBe('0.00001');
  expect(parseNumber(String(toRaw(6_000_000)))).toBe(6_000_000);
});

it('boundsText describes the inclusive bounds', () => {
  expect(boundsText(field('n_e'))).toBe('1 to 512');
  expect(boundsText(field('agent_steps'))).toBe('1 to 1e12');
});
