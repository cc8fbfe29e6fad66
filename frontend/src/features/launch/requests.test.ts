import { expect, it } from 'vitest';
import { readFields } from '@/lib/schema';
import { newDraft, type Draft } from './draft';
import { toForkRequest, toRequest } from './requests';

const fields = readFields(
  { properties: { clip: { type: 'boolean', default: false }, n_e: { type: 'integer', default: 32 } } },
  'config',
);

const draft = (raw: Draft['raw']): Draft => ({
  ...newDraft({ algorithms: [], environments: [] }, {}),
  raw,
});

it('toRequest and toForkRequest contain the value of a list or range of one value', () => {
  const single = draft({ 'config.clip': 'yes', 'config.n_e': '8..8.4 in 2' });
  const config = { clip: true, n_e: 8 };
  expect(toRequest(fields, single)).toMatchObject({ config });
  expect(toForkRequest(fields, single, null)).toMatchObject({ config });
});
