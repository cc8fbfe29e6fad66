import { expect, test } from 'vitest';
import { namesSeeds, withExactSeeds } from './exactSeeds';

const seedOf = (json: string): unknown => (JSON.parse(withExactSeeds(json)) as { seed: unknown }).seed;

test.each(['0', '2147483648', '9007199254740991'])('seed %s stays a number', (digits) => {
  expect(seedOf(`{"seed":${digits},"x":1}`)).toBe(Number(digits));
});

test.each(['9007199254740992', '9007199254740993', '9223372036854775807'])(
  'seed %s keeps its digits',
  (digits) => {
    expect(seedOf(`{"seed":${digits}}`)).toBe(digits);
    expect(seedOf(`{"a":[{"seed" : 1}],"seed": ${digits} , "x":1}`)).toBe(digits);
  },
);

test('text that looks like a seed is not changed', () => {
  const run = { notes: '"seed":9223372036854775807}', seed: 1, values: [9.5], agent_steps: 1 };
  expect(JSON.parse(withExactSeeds(JSON.stringify(run)))).toEqual(run);
});

test('only responses about runs are read for seeds', () => {
  expect(['/api/v1/runs', '/api/v1/runs/{run_id}', '/api/v1/comparisons'].map(namesSeeds)).toEqual([
    true,
    true,
    true,
  ]);
  expect(['/api/v1/series', '/api/v1/events'].map(namesSeeds)).toEqual([false, false]);
});
