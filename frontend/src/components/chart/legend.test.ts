import type { Data } from 'plotly.js';
import { expect, it } from 'vitest';
import { addTooltips, withShortNames } from './legend';

const trace = (name: string, meta: object): Data => ({ type: 'scatter', name, meta }) as Data;
const namesOf = (traces: readonly Data[]): unknown[] => traces.map(({ name }) => name);

it('runs have short names, and what follows their names and other traces stay', () => {
  const names = new Map([['R', { name: 'paac <a> seed 1', short: '<a> seed 1' }]]);
  const renamed = withShortNames(
    [
      trace('paac &lt;a&gt; seed 1, actor 3', { run: 'R' }),
      trace('min–max', { run: 'R' }),
      trace('paac &lt;a&gt; seed 1', { run: 'other' }),
    ],
    names,
  );
  expect(namesOf(renamed)).toEqual(['&lt;a&gt; seed 1, actor 3', 'min–max', 'paac &lt;a&gt; seed 1']);
  expect(renamed[0]).toMatchObject({ meta: { run: 'R', title: 'paac <a> seed 1, actor 3' } });
});

it('groups are called by the settings in which they differ', () => {
  const groups = ['0.0224', '0.0028'].map((rate) =>
    trace(`PAAC on CartPole (learning_rate = ${rate}), 5 seeds`, { group: rate }),
  );
  expect(namesOf(withShortNames(groups, new Map()))).toEqual([
    'learning_rate = 0.0224, 5 seeds',
    'learning_rate = 0.0028, 5 seeds',
  ]);
});

it('an entry of the legend has the whole name as its tooltip, once', () => {
  const chart = document.createElement('div');
  chart.innerHTML = '<svg><g class="legend"><g class="traces"></g><g class="traces"></g></g></svg>';
  const [first] = chart.querySelectorAll('.traces');
  const keep = (title: string): unknown =>
    Object.assign(first as object, { __data__: [{ trace: { meta: { title } } }] });
  keep('paac seed 1');
  addTooltips(chart);
  keep('paac seed 2');
  addTooltips(chart);
  expect([...chart.querySelectorAll('title')].map(({ textContent }) => textContent)).toEqual(['paac seed 2']);
});
