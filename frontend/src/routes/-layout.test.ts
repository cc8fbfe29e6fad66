import { expect, it } from 'vitest';
import { compareSearch, runsSearch } from '@/components/run/search';
import type { PageState } from '@/features/views/document';
import { withLayout } from './-layout';

const ID = '01JD3QZ6W9K0Y5T8H2V4B7N1XC';
const list = (search: object): PageState => ({ page: 'runs', search: runsSearch({ ...search }) });
const charts = (search: object): PageState => ({ page: 'compare', search: compareSearch({ ...search }) });
const searchOf = (state: PageState): unknown => JSON.parse(JSON.stringify(state.search));

it.each([
  [{}, { q: 'archived:false' }],
  [
    { q: 'tag:a', group: 'seed' },
    { q: 'tag:a', group: 'seed' },
  ],
  [{ q: 'tag:a', state: 'failed' }, { q: 'archived:false (state:failed) (tag:a)' }],
  [{ q: 'tag:a', selected: ID }, { runs: ID }],
  [{ q: 'tag:a', selected: '*' }, { q: 'tag:a' }],
])('the list of %o leads to the charts of what is selected, else of what matches', (search, expected) => {
  expect(searchOf(withLayout(list(search), 'beside', undefined))).toEqual({ ...expected, list: 'beside' });
});

it('the charts lead back to what is compared', () => {
  expect(searchOf(withLayout(charts({ runs: ID, list: 'beside' }), 'alone', undefined))).toEqual({
    selected: ID,
  });
  const everything = withLayout(list({}), 'beside', undefined);
  expect(searchOf(withLayout(everything, 'alone', undefined))).toEqual({});
  expect(searchOf(withLayout(everything, 'hidden', undefined))).toMatchObject({ list: 'hidden' });
});
