import { describe, expect, it } from 'vitest';
import { panelsOf } from '@/components/run/panels';
import { compareSearch, runsSearch, viewSearch } from '@/components/run/search';
import {
  differs,
  isTooLong,
  nameProblem,
  type PageState,
  shownDocument,
  stateOf,
  suggestedName,
  toDocument,
  toState,
} from './document';

const ids = (n: number): string[] =>
  Array.from({ length: n }, (_, at) => `01JD3QZ6W9K0Y5T8H2V4B7${String(1000 + at)}`);
const [A, B] = ids(2) as [string, string];

const runs = (search: Record<string, unknown>): PageState => ({ page: 'runs', search: runsSearch(search) });
const compare = (search: Record<string, unknown>): PageState => ({
  page: 'compare',
  search: compareSearch({ list: 'beside', ...search }),
});

const STATES: Record<string, PageState> = {
  'the list': runs({}),
  'a filtered list': runs({
    q: 'tag:baseline score>1',
    state: 'failed',
    sort: '-config.learning_rate',
    archived: true,
    columns: 'state,name:220px,config.a%2Cb',
  }),
  groups: runs({ group: 'config.learning_rate' }),
  'a comparison': compare({ runs: `${A},${B}` }),
  'a comparison with everything': compare({
    runs: `${A},${B}`,
    styles: '3,0',
    group_styles: '0f3c5a7e:3',
    hidden: B,
    sort: '-name',
    pins: `${B},0f3c5a7e`,
    list: 'hidden',
    x: 'wall_time_s',
    smoothing: 'ema',
    scale: 60,
    zoom: '1000..2000.5',
    log: 'loss/value',
    metrics: 'rollout/episode_return,loss/value',
    sizes: 'loss/value:6x400',
    group: 'seed',
    centre: 'iqm',
    interval: 'bootstrap',
    seeds: true,
    setting: 'config.learning_rate',
    drawn: 'best_return',
    score: 'evaluation',
    at: 'end',
    baseline: '0f3c5a7e',
    pairs: 'all',
    protocol: 'noop_starts',
    threshold: -20,
  }),
  'a comparison of what matches': compare({ q: 'tag:baseline', group: 'seed' }),
  'a comparison with every line': compare({ runs: `${A},${B}`, hidden: 'none' }),
  'panels of many kinds': compare({
    runs: A,
    setting: 'config.learning_rate',
    panels: [
      { kind: 'lines', metrics: ['loss/value'], log: true, columns: 6, height_px: 400 },
      {
        kind: 'lines',
        metrics: ['a', 'b'],
        formulas: ['ema(a, 0.9) / b'],
        x: 'c',
        title: 'Ratio',
        tab: 'Losses',
      },
      { kind: 'scatter', setting: 'config.n_e', score: 'best_return', columns: 4, height_px: 228 },
      { kind: 'bars' },
      { kind: 'strips', setting: 'config.n_e' },
      { kind: 'heatmap', settings: ['config.n_e', 'config.learning_rate'] },
      { kind: 'importance' },
      { kind: 'parallel' },
      { kind: 'text', text: '**Note**', tab: 'Losses' },
      { kind: 'diff' },
    ],
  }),
  'a metric twice': compare({
    runs: A,
    panels: [
      { kind: 'lines', metrics: ['loss/value'] },
      { kind: 'lines', metrics: ['loss/value'] },
    ],
  }),
  'no panel': compare({ runs: A, metrics: 'none', smooth: 0.5 }),
};

/** Without the fields that have no value. */
const plain = (state: PageState): unknown => JSON.parse(JSON.stringify(state));

describe('the document of a view', () => {
  it.each(Object.entries(STATES))('has all that the address of %s says', (_, state) => {
    expect(plain(toState(toDocument(state)))).toEqual(plain(state));
    expect(differs(state, toDocument(state))).toBe(false);
    const address = viewSearch({ ...state.search, changed: 3, by: 'ada' });
    expect(plain(stateOf(address))).toEqual(plain(state));
  });

  it('differs for each change but that of the selection', () => {
    const documents = Object.values(STATES).map(toDocument);
    for (const [at, state] of Object.values(STATES).entries())
      for (const [other, document] of documents.entries())
        expect(differs(state, document)).toBe(at !== other);
    expect(differs(runs({ selected: A }), toDocument(runs({})))).toBe(false);
  });

  it('names metrics where that is all, and opens the tab of none', () => {
    const panels = [{ kind: 'lines', metrics: ['loss/value'], log: true, columns: 6, height_px: 400 }];
    const plainly = compare({ runs: A, metrics: 'loss/value', log: 'loss/value', sizes: 'loss/value:6x400' });
    expect(plain(toState(toDocument(compare({ runs: A, panels, tab: 'Losses' }))))).toEqual(plain(plainly));
  });

  it('leaves out what is no panel', () => {
    const panels = [
      'text',
      { kind: 'text', text: 'kept', sparkles: true, columns: 99, metrics: 'a' },
      { kind: 7 },
      null,
    ];
    expect(panelsOf(compareSearch({ panels }))).toEqual([{ kind: 'text', text: 'kept' }]);
  });

  it('is too long for an address from some 70 runs on; selected rows do not count', () => {
    expect(isTooLong(compare({ runs: ids(60).join(',') }))).toBe(false);
    expect(isTooLong(compare({ runs: ids(80).join(',') }))).toBe(true);
    expect(isTooLong(runs({ selected: ids(100).join(',') }))).toBe(false);
  });
});

describe('what a page shows', () => {
  it('is its selected runs or groups, if there are any', () => {
    const shown = (search: Record<string, unknown>) => {
      const { document, groups } = shownDocument(runs(search));
      return [document.runs, groups];
    };
    expect(shown({ selected: `${B},${A}` })).toEqual([[B, A], []]);
    expect(shown({ selected: `*,${A}` })).toEqual([[], []]);
    expect(shown({ group: 'seed', selected: '0f3c5a7e' })).toEqual([[], ['0f3c5a7e']]);
    expect(shown({ group: 'group', selected: '!,a%2Cb' })).toEqual([[], ['', 'a%2Cb']]);
    expect(shown({ group: 'seed' })).toEqual([[], []]);
  });
});

describe('the name of a view', () => {
  it('is suggested from its filter, and is a new one', () => {
    expect(suggestedName(toDocument(runs({ q: 'group:"lr x clip"  score>1' })), new Set())).toBe(
      'group: lr x clip score>1',
    );
    expect(suggestedName(toDocument(runs({ q: '...' })), new Set(['Runs']))).toBe('Runs 2');
    expect(suggestedName(toDocument(compare({})), new Set())).toBe('Comparison');
  });

  it('is one that an address can hold', () => {
    expect(['lr × clip', ''].map(nameProblem)).toEqual([null, null]);
    for (const wrong of ['a/b', '..', 'a"', 'x'.repeat(101)]) expect(nameProblem(wrong)).not.toBeNull();
  });
});
