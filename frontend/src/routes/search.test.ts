import { expect, it } from 'vitest';
import { compareSearch, runSearch, runsSearch } from './search';

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

it('keeps the fields of what it drops, or the router would keep what they held', () => {
  expect(runSearch({ tab: 'nope', x: 'foo' })).toMatchObject({ tab: undefined, x: undefined });
  expect(Object.keys(runSearch({ tab: 'nope', x: 'foo' }))).toEqual(expect.arrayContaining(['tab', 'x']));
  expect(Object.keys(runsSearch({ archived: 'banana' }))).toContain('archived');
});

it('sorts by what the service sorts by', () => {
  expect(runsSearch({ sort: '-score' }).sort).toBe('-score');
  expect(runsSearch({ sort: 'bar' }).sort).toBeUndefined();
});

it('compares ids that can be ids', () => {
  expect(compareSearch({ runs: `a,${ID},b` }).runs).toBe(ID);
  expect(compareSearch({ runs: 'a,b' }).runs).toBeUndefined();
});
