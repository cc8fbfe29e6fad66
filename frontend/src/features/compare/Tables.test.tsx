import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Run } from '@/api/runs';
import { differing } from './ScoreScatter';
import { configDiff, ConfigDiffTable, ScoresTable } from './Tables';

vi.hoisted(() => {
  // The service has not answered yet.
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

async function present(shown: ReactNode): Promise<void> {
  const router = createRouter({
    routeTree: createRootRoute({ component: () => shown }),
    history: createMemoryHistory(),
  });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

const run = (config: object, more: object = {}): Run =>
  ({
    spec: { algorithm: 'paac', environment: 'CartPole-v1', seed: 0, device: 'auto', config, ...more },
  }) as unknown as Run;

it('configDiff lists the values that differ and no others', () => {
  const differences = configDiff([run({ n_e: 8, gamma: 0.99 }), run({ n_e: 16, gamma: 0.99 }, { seed: 1 })]);
  expect(differences).toEqual([
    { path: 'seed', values: [0, 1] },
    { path: 'config.n_e', values: [8, 16] },
  ]);
});

it('configDiff includes a value that one run lacks', () => {
  expect(configDiff([run({ n_e: 8 }), run({})])).toEqual([{ path: 'config.n_e', values: [8, undefined] }]);
});

it('configDiff leaves out what only runs of another kind lack', () => {
  const ours = [run({ n_e: 8, gamma: 0.9 }), run({ n_e: 16, gamma: 0.9 })];
  const external = { ...run({ lr: 1 }), origin: 'external' } as Run;
  expect(configDiff([...ours, external]).map(({ path }) => path)).toEqual(['config.n_e']);
});

it('configDiff has no seed of a run whose script has named none', () => {
  const differences = configDiff([run({}), run({}, { seed_is_known: false })]);
  expect(differences).toEqual([{ path: 'seed', values: [0, undefined] }]);
});

it('configDiff is empty for identical configs', () =>
  expect(configDiff([run({ n_e: 8 }), run({ n_e: 8 })])).toEqual([]));

it('ConfigDiffTable has one column for each config, with its number of seeds', async () => {
  const seeded = (id: string, n_e: number, seed: number): Run => ({
    ...run({ n_e }, { seed }),
    id,
    name: id,
  });
  const runs = [seeded('a', 8, 0), seeded('b', 8, 1), seeded('c', 16, 0)];
  const show = (shown: Run[]) => present(<ConfigDiffTable runs={shown} />);
  await show(runs);
  expect(screen.getAllByRole('columnheader').map(({ textContent }) => textContent)).toEqual([
    'Hyperparameter',
    'a2 seeds',
    'c1 seed',
  ]);
  expect(
    screen
      .getAllByRole('cell')
      .map(({ textContent }) => textContent)
      .slice(1),
  ).toEqual(['8', '16']);
  cleanup();
  await show(runs.slice(0, 2));
  expect(screen.getByText('The configs are identical but for the seed.')).toBeTruthy();
});

it('differing names the settings of the algorithm first and the seed last', () => {
  const runs = [run({ n_e: 8 }, { device: 'cpu' }), run({ n_e: 16 }, { seed: 1 })];
  expect(differing(runs)).toEqual(['config.n_e', 'device', 'seed']);
});

const counting = (step_unit: string, more: object = {}): Run =>
  ({
    id: step_unit,
    name: step_unit,
    state: 'finished',
    step_unit,
    agent_steps: 20,
    ...more,
  }) as unknown as Run;

const NAMES = { shared: '', of: ({ name }: Run) => name, label: ({ name }: Run) => name };

const show = (runs: readonly Run[]): Promise<void> =>
  present(<ScoresTable runs={runs} names={NAMES as never} />);
const texts = (role: string) => screen.getAllByRole(role).map(({ textContent }) => textContent);

it('ScoresTable names what the steps of the runs count', async () => {
  await show([counting('iterations', { seed: 0, seed_is_known: false })]);
  expect(texts('columnheader')).toEqual(expect.arrayContaining(['Iterations', 'Iterations/s, mean']));
  expect(texts('cell')).toContain('20');
  expect(texts('cell')[2]).toBe('–');
  cleanup();
  await show([counting('iterations', { wall_time_s: 2 }), counting('agent_steps')]);
  expect(texts('columnheader')).toContain('Agent steps or iterations');
  expect(texts('cell')).toEqual(
    expect.arrayContaining(['20 iterations', '20 agent steps', '10 iterations/s']),
  );
});

it('ScoresTable shows the digits of a rate below one step per second', async () => {
  await show([counting('agent_steps', { wall_time_s: 500 })]);
  expect(texts('cell')).toContain('0.04');
});
