import { expect, it } from 'vitest';
import { newDraft, nRunsOf, type Draft } from './draft';

const draft = (change: Partial<Draft>): Draft => ({
  ...newDraft({ algorithms: [], environments: [] }, {}),
  ...change,
});

it('counts one run a seed, and one where the number of seeds is refused', () => {
  expect(nRunsOf(draft({ nSeeds: '3' }))).toBe(3);
  for (const nSeeds of ['1000', '0', '1.5', 'abc', '']) expect(nRunsOf(draft({ nSeeds }))).toBe(1);
});
