import type { Data } from 'plotly.js';
import { expect, it } from 'vitest';
import { valuesAt } from './readout';

const line = (name: string, y: number[], more: object = {}): Data => ({
  name,
  x: [10, 20, 30],
  y,
  meta: { kind: 'line' },
  line: { color: '#123456' },
  ...more,
});

it('valuesAt sorts the lines by their value at x, highest first', () => {
  const values = valuesAt([line('a', [1, 2, 3]), line('b', [9, 8, 7]), line('c &lt;5', [4, 5, 6])], 21, 1);
  expect(values.map(({ name, value }) => [name, value])).toEqual([
    ['b', 8],
    ['c <5', 5],
    ['a', 2],
  ]);
});

it('valuesAt leaves out faint points, hidden lines and lines that end before x', () => {
  const traces = [
    line('points', [1, 2, 3], { hoverinfo: 'skip' }),
    line('hidden', [1, 2, 3], { visible: 'legendonly' }),
    line('short', [1, 2, 3]),
  ];
  expect(valuesAt(traces, 40, 1)).toEqual([]);
  expect(valuesAt(traces, 30.5, 1).map(({ name }) => name)).toEqual(['short']);
});

it('valuesAt names marks and evaluations only near x', () => {
  const evaluation = line('evaluation', [1, 2, 3], { meta: {}, text: ['a', 'mean of 30 episodes', 'c'] });
  const mark = line('notes', [0, 0, 0], {
    meta: {},
    yaxis: 'y2',
    text: ['one', 'two', 'three'],
    marker: { symbol: 'star', color: '#654321' },
  });
  expect(valuesAt([evaluation, mark], 25, 2)).toEqual([]);
  expect(valuesAt([mark, evaluation], 19, 2).map(({ name, note }) => [name, note])).toEqual([
    ['evaluation', 'mean of 30 episodes'],
    ['two', undefined],
  ]);
  expect(valuesAt([mark], 20, 2)[0]).toMatchObject({ colour: '#654321', symbol: 'star', value: null });
});

it('valuesAt has the range and number of the values of a point, and skips missing values', () => {
  const meta = {
    kind: 'line',
    low: Float64Array.of(0, 1, NaN),
    high: Float64Array.of(2, 3, NaN),
    n: Float64Array.of(4, 4, 0),
  };
  const [entry] = valuesAt([line('a', [1, 2, NaN], { meta })], 21, 1);
  expect(entry?.details).toEqual([1, 3, 4]);
  expect(valuesAt([line('a', [1, 2, NaN], { meta })], 30, 1)).toEqual([]);
});

it('valuesAt names how many seeds a thin line is of', () => {
  const meta = { kind: 'partial', n: Float64Array.of(3, 2, 5) };
  const [entry] = valuesAt([line('a', [1, 2, NaN], { meta, showlegend: false })], 21, 1);
  expect([entry?.value, entry?.note]).toEqual([2, 'n = 2']);
});
