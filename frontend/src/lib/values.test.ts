import { describe, expect, it } from 'vitest';
import { readFields } from './schema';
import { parseValues } from './values';

const FIELDS = readFields(
  {
    properties: {
      n_e: { type: 'integer', minimum: 1, maximum: 512 },
      learning_rate: { type: 'number', exclusiveMinimum: 0, maximum: 10 },
      network: { enum: ['nips', 'nature', 'mlp'] },
      recurrent: { type: 'boolean' },
    },
  },
  'config',
);

function parse(key: string, raw: string | boolean) {
  const [field] = FIELDS.filter((candidate) => candidate.key === key);
  if (!field) throw new Error(`there is no field ${key}`);
  return parseValues(field, raw);
}

describe('parseValues', () => {
  it.each([
    ['learning_rate', '0.001', [0.001]],
    ['learning_rate', '0.001, 0.003', [0.001, 0.003]],
    ['learning_rate', '1e-4,3e-4', [0.0001, 0.0003]],
    ['learning_rate', '0.0001..0.01 log 5', [0.0001, 0.0003162, 0.001, 0.003162, 0.01]],
    ['learning_rate', '0.25..1 by 0.25', [0.25, 0.5, 0.75, 1]],
    ['learning_rate', '0.1..0.5 in 3', [0.1, 0.3, 0.5]],
    ['n_e', '1..9 BY 4', [1, 5, 9]],
    ['learning_rate', '0.1..0.5 In 3', [0.1, 0.3, 0.5]],
    ['n_e', '1..4', [1, 2, 3, 4]],
    ['n_e', '8..64 log 4', [8, 16, 32, 64]],
    ['n_e', '1..3 in 5', [1, 2, 3]],
    ['n_e', '16, 32, 64', [16, 32, 64]],
    ['n_e', '1,2,3', [1, 2, 3]],
    ['network', 'nips, nature', ['nips', 'nature']],
    ['network', 'nips', ['nips']],
    ['recurrent', 'yes, no', [true, false]],
    ['recurrent', true, [true]],
  ])('reads %s = "%s"', (key, raw, values) => expect(parse(key, raw)).toEqual({ values, error: null }));

  it.each([
    ['learning_rate', '0.001, 20', '20: Must be above 0, at most 10.'],
    ['learning_rate', '0.1, 0.10', '0.10 is given twice.'],
    ['learning_rate', '0.1, ', 'Enter a value after each comma.'],
    // A decimal comma, or two values.
    ['learning_rate', '0,001', /decimal point.*space after each comma/],
    ['learning_rate', '0..1 log 3', 'A range with equal ratios must start above 0.'],
    ['n_e', '5..1', 'The end of a range must be above its start.'],
    ['n_e', '1..512', 'At most 100 values are allowed; these are 512.'],
    ['n_e', '1..a', 'Enter numbers at both ends of the range.'],
    ['n_e', '1..9 in 1', /at least 2/],
    ['n_e', '1..9 by 0', /above 0/],
    ['n_e', '1..9 by 9', /step that fits/],
    ['learning_rate', '0.1..0.5', /such as by 0.1/],
    ['network', 'nips, big', 'big: Choose one of nips, nature, mlp.'],
    ['recurrent', 'yes, maybe', 'maybe: Enter yes or no.'],
  ])('rejects %s = "%s"', (key, raw, message) => {
    const { values, error } = parse(key, raw);
    expect(values).toEqual([]);
    expect(error).toMatch(message);
  });

  it('reads digits in groups of three as one number', () =>
    expect(parse('learning_rate', '1,000').error).toContain('Must be'));
});
