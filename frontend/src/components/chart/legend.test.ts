import type { Data } from 'plotly.js';
import { expect, it } from 'vitest';
import type { Meta } from '@/api/tails';
import { plain, withShortNames } from './legend';

const trace = (name: string, meta: Meta): Data => ({ type: 'scatter', name, meta }) as unknown as Data;
const namesOf = (traces: readonly Data[]): unknown[] => traces.map(({ name }) => name);

it('runs have short names, and details and other traces stay', () => {
  const names = new Map([['R', { name: 'paac <a> seed 1', short: '<a> seed 1' }]]);
  const label = { name: 'paac <a> seed 1', detail: 'actor 3' };
  const renamed = withShortNames(
    [
      trace('paac &lt;a&gt; seed 1, actor 3', { kind: 'line', run: 'R', label }),
      trace('min–max', { kind: 'range', run: 'R', label }),
      trace('training', { kind: 'line', run: 'R', label: { name: 'training' } }),
      trace('paac &lt;a&gt; seed 1', { kind: 'line', run: 'other', label: { name: 'paac <a> seed 1' } }),
    ],
    names,
  );
  expect(namesOf(renamed)).toEqual([
    '&lt;a&gt; seed 1, actor 3',
    'min–max',
    'training',
    'paac &lt;a&gt; seed 1',
  ]);
  expect(renamed[0]).toMatchObject({ meta: { run: 'R', title: 'paac <a> seed 1, actor 3' } });
});

it('names with what plotly would replace are shown as they are', () => {
  const names = new Map([['R', { name: 'at %{x}', short: 'at %{x}' }]]);
  const [renamed] = withShortNames(
    [trace('at %&#123;x}', { kind: 'line', run: 'R', label: { name: 'at %{x}' } })],
    names,
  );
  expect(renamed).toMatchObject({ name: 'at %&#123;x}' });
  expect(plain('at %&#123;x}')).toBe('at %{x}');
});

it('groups are called by the settings in which they differ', () => {
  const groups = ['0.0224', '0.0028'].map((rate) =>
    trace(`PAAC on CartPole (learning_rate = ${rate}), 5 seeds`, {
      kind: 'line',
      group: rate,
      label: { name: 'PAAC on CartPole', settings: `learning_rate = ${rate}`, detail: '5 seeds' },
    }),
  );
  expect(namesOf(withShortNames(groups, new Map()))).toEqual([
    'learning_rate = 0.0224, 5 seeds',
    'learning_rate = 0.0028, 5 seeds',
  ]);
});
