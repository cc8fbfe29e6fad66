import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { RunDetail } from '@/api/runs';
import { RunHeader } from './RunHeader';

vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUN = {
  id: '00000000000000000000000001',
  name: 'one',
  origin: 'callboard',
  algorithm: 'paac',
  environment: 'CartPole-v1',
  state: 'finished',
  seed: 1,
  seed_is_known: true,
  agent_steps: 1000,
  frames: 1000,
  episodes: 9,
  attempt: 1,
  attempts: [],
  processes: [],
  children: [],
  spec: { stop: { agent_steps: 2000 } },
  tags: [],
  notes: '',
  created_at: '2026-11-20T10:00:00Z',
  started_at: '2026-11-20T10:00:00Z',
} as unknown as RunDetail;

async function show(role: string, run = RUN, environment: object | null = null, people: object[] = []) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role, missing_extras: [] });
  if (environment) client.setQueryData(keys.environment(run.environment), environment);
  client.setQueryData(keys.humanReferences(), people);
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <RunHeader run={run} onDeleted={() => undefined} />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

/** Opens the menu, and returns the names of its items: those that can be chosen, and the others. */
async function items(): Promise<[string[], string[]]> {
  fireEvent.click(screen.getByRole('button', { name: 'More actions for one' }));
  const all = await screen.findAllByRole('menuitem');
  const isDisabled = (button: HTMLElement): boolean => button.dataset.disabled !== undefined;
  const names = (buttons: HTMLElement[]): string[] => buttons.map(({ textContent }) => textContent);
  return [names(all.filter((button) => !isDisabled(button))), names(all.filter(isDisabled))];
}

const EXPORTS = ['CSV', 'Parquet', 'TensorBoard (zip)'];

it('RunHeader disables what a viewer may not do, with the reason', async () => {
  await show('viewer');
  const button = screen.getByRole('button', { name: 'Resume' });
  expect(button.getAttribute('aria-disabled')).toBe('true');
  expect(button.title).toBe('Requires the role operator; your role is viewer.');
  expect(await items()).toEqual([EXPORTS, ['Archive', 'Clone', 'Fork', 'Delete']]);
  expect(screen.getByText('Requires the role operator; your role is viewer.')).toBeTruthy();
});

it('RunHeader offers an operator every action, Delete last', async () => {
  await show('operator');
  expect(screen.getByRole('button', { name: 'Resume' }).getAttribute('aria-disabled')).toBeNull();
  expect(await items()).toEqual([['Archive', 'Clone', 'Fork', ...EXPORTS, 'Delete'], []]);
});

it('RunHeader has one button, the bell and one menu in every state', async () => {
  for (const [state, primary] of [
    ['queued', 'Cancel'],
    ['starting', 'Stop and keep a checkpoint'],
    ['running', 'Stop and keep a checkpoint'],
    ['stopping', 'Stop and keep a checkpoint'],
    ['lost', 'Stop'],
    ['failed', 'Resume'],
  ]) {
    await show('operator', { ...RUN, state, agent_steps: 0 } as RunDetail);
    const buttons = screen.getAllByRole('button').map((button) => button.getAttribute('aria-label'));
    const actions = buttons.slice(buttons.indexOf('Edit name') + 1, buttons.indexOf('Edit name') + 4);
    expect(actions).toEqual([primary, 'Notify me of one', 'More actions for one']);
    expect((await items())[1]).toContain('Fork');
    cleanup();
  }
});

it('RunHeader shows the score beside those of random play and a human', async () => {
  const published = [
    { label: 'human', score: 9.3, source: 'Mnih 2015', protocol: 'noop_starts_5min' },
    { label: 'random', score: -20.7, source: 'Mnih 2015', protocol: 'noop_starts_5min' },
    { label: 'random', score: 5, source: 'elsewhere', protocol: 'another' },
  ];
  await show(
    'viewer',
    { ...RUN, score: -17.25, time_left_s: 14_000, progress: 0.5 },
    {
      published,
      evaluation_protocols: ['noop_starts_5min'],
    },
  );
  const facts = screen.getAllByRole('definition').map(({ textContent }) => textContent);
  expect(facts.slice(0, 3)).toEqual(['−17.3', '−20.7', '9.3']);
  expect(facts).toContain('about\u00a04\u00a0h');
});

it('RunHeader shows the mean of a person here only where no human score has been published', async () => {
  const people = [
    { environment: 'Memory-v0', player: 'bob', mean_return: 1, n_games: 9 },
    { environment: 'CartPole-v1', player: 'ada', mean_return: 120.5, n_games: 5 },
  ];
  const environment = {
    published: [],
    evaluation_protocols: ['plain'],
    actions: 'discrete',
    family: 'classic',
  };
  await show('viewer', RUN, environment, people);
  const fact = screen.getByText('Human here').closest('div');
  expect(fact?.textContent).toContain('120.5');
  expect(fact?.title).toContain('Mean of ada over 5 games here');
  cleanup();
  const human = { label: 'human', score: 9, source: 'a paper', protocol: 'plain' };
  await show('viewer', RUN, { ...environment, published: [human] }, people);
  expect(screen.queryByText('Human here')).toBeNull();
  cleanup();
  await show('viewer', { ...RUN, environment: 'CartPole-v0' }, environment, people);
  expect(screen.queryByText('Human here')).toBeNull();
});

it('RunHeader of an ended external run has no button, host or progress that nobody here knows', async () => {
  const external = { ...RUN, origin: 'external', progress: 1, spec: {} } as unknown as RunDetail;
  await show('operator', external);
  expect(screen.queryByRole('button', { name: 'Resume' })).toBeNull();
  expect((await items())[1]).toContain('Resume');
  const facts = screen.getAllByRole('term', { hidden: true }).map(({ textContent }) => textContent);
  expect(facts).toContain('Agent steps');
  expect(facts.filter((fact) => /Host|Attempt|Time left/.test(fact))).toEqual([]);
  expect(screen.queryByRole('progressbar', { hidden: true })).toBeNull();
});

it('RunHeader of the demo run, which has no checkpoint, has no button that resumes it', async () => {
  await show('operator', { ...RUN, demo: true });
  expect(screen.queryByRole('button', { name: 'Resume' })).toBeNull();
  const [chosen, disabled] = await items();
  expect(chosen).toContain('Clone');
  expect(disabled).toContain('Resume');
});

it('RunHeader names no seed of a run whose script has named none', async () => {
  await show('viewer');
  expect(screen.getByText(/paac on CartPole-v1/).textContent).toContain(', seed 1');
  cleanup();
  await show('viewer', { ...RUN, origin: 'external', seed: 0, seed_is_known: false });
  expect(screen.getByText(/paac on CartPole-v1/).textContent).not.toContain('seed');
});

it('RunHeader shows the digits of a rate below one step per second', async () => {
  await show('viewer', { ...RUN, agent_steps_per_s: 0.04 });
  expect(screen.getByText('Agent steps/s').closest('div')?.textContent).toBe('Agent steps/s0.04');
});
