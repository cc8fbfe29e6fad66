import { describe, expect, it } from 'vitest';
import { compareSearch, runsSearch } from '@/components/run/search';
import { SIGN_IN_ERRORS } from '@/features/account/signInErrors';
import { defined, type Unchecked } from '@/lib/search';
import { Route as RunRoute } from './_shell/runs/$runId/index';
import { Route as ScoresRoute } from './_shell/scores';
import { Route as SweepRoute } from './_shell/sweeps/$sweepId';
import { Route as LoginRoute } from './login';

/** How a page reads the parameters of its address. */
const readingOf = (route: { options: { validateSearch?: unknown } }) =>
  route.options.validateSearch as (search: Unchecked) => Unchecked;

const runSearch = readingOf(RunRoute);
const scoresSearch = readingOf(ScoresRoute);
const sweepSearch = readingOf(SweepRoute);
const loginSearch = readingOf(LoginRoute);

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

describe('runSearch', () => {
  it('keeps an invalid parameter as undefined, so that the router drops it', () => {
    const search = runSearch({ tab: 'nope', x: 'foo' });
    expect(search).toMatchObject({ tab: undefined, x: undefined });
    expect(Object.keys(search)).toEqual(expect.arrayContaining(['tab', 'x']));
  });

  it('keeps the tab', () => expect(runSearch({ tab: 'log' }).tab).toBe('log'));

  it('keeps the selected video', () => expect(runSearch({ video: ID }).video).toBe(ID));
});

describe('runsSearch', () => {
  it('keeps an invalid flag as undefined', () =>
    expect(Object.keys(runsSearch({ archived: 'banana' }))).toContain('archived'));

  it('accepts only the fields by which the service sorts', () => {
    expect(runsSearch({ sort: '-score' }).sort).toBe('-score');
    expect(runsSearch({ sort: 'bar' }).sort).toBeUndefined();
    for (const sort of ['device', '-annealing_agent_steps']) expect(runsSearch({ sort }).sort).toBe(sort);
  });

  it('accepts every setting by which runs are grouped', () => {
    const settings = [
      'config.learning_rate',
      'annealing_agent_steps',
      'config.optim.lr',
      'config.batch-size',
    ];
    for (const group of settings) expect(runsSearch({ group }).group).toBe(group);
    for (const group of ['score', 'config.', '<b>.x']) expect(runsSearch({ group }).group).toBeUndefined();
  });
});

describe('compareSearch', () => {
  it('drops invalid run ids', () => {
    expect(compareSearch({ runs: `a,${ID},b` }).runs).toBe(ID);
    expect(compareSearch({ runs: 'a,b' }).runs).toBeUndefined();
  });

  it('keeps a protocol that may exist', () => {
    for (const id of ['noop_starts_5min', 'agent_starts:wall', 'human_starts_greedy:my-set@12'])
      expect(compareSearch({ protocol: id }).protocol).toBe(id);
    expect(compareSearch({ protocol: 'no-op starts' }).protocol).toBeUndefined();
  });
});

it('sweepSearch keeps the sort, the setting and the scale, and drops what cannot be one', () => {
  const search = { sort: '-config.learning_rate', setting: 'config.n_e', log: false };
  expect(sweepSearch(search)).toEqual(search);
  expect(sweepSearch({ setting: 'config.share, %' }).setting).toBe('config.share, %');
  expect(sweepSearch({ sort: '--iqm', setting: 'x'.repeat(221), log: 'x' })).toEqual({
    sort: undefined,
    setting: undefined,
    log: undefined,
  });
});

describe('the charts of a page', () => {
  it('are zoomed, smoothed and scaled by valid parameters only', () => {
    const search = {
      zoom: '10..20',
      smoothing: 'window',
      scale: 5,
      log: 'loss/td,a%2Cb',
      metrics: '奖励 (%25),c',
    };
    expect(compareSearch(search)).toMatchObject(search);
    expect(compareSearch({ zoom: '20..10', smoothing: 'points', scale: -1, interval: 'x' })).toMatchObject({
      zoom: undefined,
      smoothing: undefined,
      scale: undefined,
      interval: undefined,
    });
  });
});

describe('loginSearch', () => {
  it('keeps the errors that the page can explain', () => {
    for (const error of SIGN_IN_ERRORS) expect(loginSearch({ error }).error).toBe(error);
    expect(loginSearch({ error: 'x' }).error).toBeUndefined();
  });

  it.each(['/', '/runs?q=tag%3Aa&x=1#top', '/scores/é'])('returns to %j of this site', (from) =>
    expect(loginSearch({ from }).from).toBe(from),
  );

  it.each([
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/\r\\evil.example',
    '\t//evil.example',
    '/runs\n',
    'https://evil.example',
    'runs',
  ])('does not return to %j', (from) => expect(loginSearch({ from }).from).toBeUndefined());
});

const OTHER_ID = '01ARZ3NDEKTSV4RRFFQ69G5FAW';

it.each([
  [compareSearch, { run: ID, metric: 'loss/value' }, { runs: ID, metrics: 'loss/value' }],
  [compareSearch, { run: [ID, OTHER_ID] }, { runs: `${ID},${OTHER_ID}` }],
  [compareSearch, { runs: [ID, OTHER_ID] }, { runs: `${ID},${OTHER_ID}` }],
  [compareSearch, { metric: ['a,b', 'c'] }, { metrics: 'a%2Cb,c' }],
  [compareSearch, { runs: OTHER_ID, run: ID }, { runs: OTHER_ID }],
  [runsSearch, { filter: 'score>10' }, { q: 'score>10' }],
  [scoresSearch, { column: ['paac', 'random'], min_seeds: 3 }, { columns: 'paac,random', seeds: 3 }],
])('%o reads parameters by the names of REST and by its own: %o', (search, written, read) => {
  expect(defined<object>(search(written))).toEqual(read);
});
