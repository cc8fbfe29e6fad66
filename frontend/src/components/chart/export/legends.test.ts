import { expect, it } from 'vitest';
import { legendOf, type Legends, withLegend } from './legends';

const entry = (number: number, name: string) => ({ number, name, text: name });
const view = [entry(0, 'lr 0.1'), entry(1, 'lr 0.2')];

it('legendOf has the edited entries for the same names in any order, and for no others', () => {
  const edited = [entry(1, 'lr 0.2'), { ...entry(0, 'lr 0.1'), text: 'η = 0.1' }];
  const legends = withLegend({}, view, edited);
  expect(legendOf(legends, view)).toEqual(edited);
  const reversed = [entry(0, 'lr 0.2'), entry(1, 'lr 0.1')];
  expect(legendOf(legends, reversed)?.map(({ number, text }) => [number, text])).toEqual([
    [0, 'lr 0.2'],
    [1, 'η = 0.1'],
  ]);
  expect(legendOf(legends, [entry(0, 'lr 0.1')])).toBeUndefined();
  expect(legendOf(withLegend(legends, view, undefined), view)).toBeUndefined();
});

it('withLegend forgets the legends that were edited longest ago', () => {
  const names = Array.from({ length: 101 }, (_, at) => `name ${at}`);
  const legends = names.reduce<Legends>(
    (kept, name) => withLegend(kept, [entry(0, name)], [entry(0, name)]),
    {},
  );
  expect(Object.keys(legends)).toEqual(names.slice(1));
});
