import { expect, it } from 'vitest';
import { fitted, legendNames, shortNames, splitShared } from './shortNames';

const short = (...names: string[]): string[] => [
  ...shortNames(names.map((name, at) => ({ id: `${at}`, name }))).values(),
];

it('names keep only the words in which they differ', () => {
  expect(
    short('paac Pong learning_rate=0.1 n_e=8 seed 1', 'paac Pong learning_rate=0.2 n_e=8 seed 1'),
  ).toEqual(['learning_rate=0.1', 'learning_rate=0.2']);
  expect(short('paac Pong seed 1', 'paac Pong seed 2', 'paac Pong n_e=8 seed 2')).toEqual([
    'seed 1',
    'seed 2',
    'n_e=8 seed 2',
  ]);
});

it.each([[['baseline', 'baseline longer']], [['same', 'same']], [['alone']], [['a b', 'b a']]])(
  'names that would be empty or equal stay whole: %j',
  (names) => {
    expect(short(...names)).toEqual(names);
  },
);

it('runs that share a name are named with their known seeds', () => {
  const runs = [
    { id: 'a', name: 'lr 0.1', seed: 0, seed_is_known: true },
    { id: 'b', name: 'lr 0.1', seed: 1, seed_is_known: true },
    { id: 'c', name: 'lr 0.2', seed: 0, seed_is_known: true },
  ];
  expect([...shortNames(runs).values()]).toEqual(['0.1, seed 0', '0.1, seed 1', '0.2']);
  const same = runs.slice(0, 2);
  expect([...shortNames(same.map((run) => ({ ...run, seed: 0 }))).values()]).toEqual(['lr 0.1', 'lr 0.1']);
  const unknown = same.map((run) => ({ ...run, seed_is_known: false }));
  expect([...shortNames(unknown).values()]).toEqual(['lr 0.1', 'lr 0.1']);
});

it.each([
  [['rate = 0.1, 5 seeds', 'rate = 0.01, 5 seeds'], 'rate, 5 seeds', ['0.1', '0.01']],
  [['rate = 0.1, 5 seeds', 'rate = 0.2, 3 seeds'], 'rate', ['0.1, 5 seeds', '0.2, 3 seeds']],
  [['rate = 1, n_e = 8', 'rate = 2, n_e = 8'], 'rate, n_e = 8', ['1', '2']],
  [['rate = 1', 'rate = 1, n_e = 8'], 'rate', ['1', '1, n_e = 8']],
  [['rate = 1', 'rate = 1'], '', ['rate = 1', 'rate = 1']],
  [['rate 0.1', 'rate 0.2'], '', ['rate 0.1', 'rate 0.2']],
  [[], '', []],
])('splitShared: %j', (names, shared, rest) => {
  expect(splitShared(names)).toEqual({ shared, rest });
});

it('names of a legend are at most 32 characters long, cut at what they share', () => {
  const long = ['0.0224', '0.0028'].map(
    (rate) => `paac CartPole-v1 learning_rate=${rate} evaluation_episodes=5 seed 1`,
  );
  const runs = ['dqn Catch-v0 seed 2', ...long].map((name) => ({ id: name, name }));
  const names = [...legendNames(runs).values()];
  expect(names.map(({ short }) => short)).toEqual([
    'dqn Catch-v0 seed 2',
    '…learning_rate=0.0224',
    '…learning_rate=0.0028',
  ]);
  expect(names.map(({ name }) => name)).toEqual(runs.map(({ name }) => name));
});

it.each([
  ['the middle is cut', ['a'.repeat(40) + ' one', 'b'.repeat(40) + ' two']],
  [
    'a common start and end are cut',
    ['3e-4', '1e-3'].map((rate) => `${'x_'.repeat(20)}${rate}${'_y'.repeat(20)}`),
  ],
  ['equal names stay equal', ['z'.repeat(50), 'z'.repeat(50)]],
])('fitted: %s', (_, names) => {
  const short = fitted(names);
  expect(short.every(({ length }) => length <= 32)).toBe(true);
  expect(new Set(short).size).toBe(new Set(names).size);
});

it('fitted keeps numbers whole', () => {
  const [first] = fitted(['0.0224', '0.0028'].map((rate) => `${'x_'.repeat(20)}${rate}${'_y'.repeat(20)}`));
  expect(first).toBe('…0.0224…');
});
