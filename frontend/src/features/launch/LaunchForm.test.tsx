import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRouter,
  RouterContextProvider,
} from '@tanstack/react-router';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { toProblem } from '@/api/problem';
import { createRuns, forkRun, type Run, type RunEstimate } from '@/api/runs';
import { createSweep, type Sweep } from '@/api/sweeps';
import { newDraft, type Catalogue } from './draft';
import { LaunchForm } from './LaunchForm';

const service = vi.hoisted(() => {
  const state = { refuses: null as object | null, older: null as object | null, requestedOlder: 0 };
  globalThis.fetch = (request) => {
    const isOlder = (request as Request).url.endsWith('/api/v1/runs/parent/checkpoints?cursor=next');
    if (isOlder) state.requestedOlder += 1;
    if (isOlder && state.older) return Promise.resolve(Response.json(state.older));
    return state.refuses
      ? Promise.resolve(Response.json(state.refuses, { status: 422 }))
      : Promise.reject(new TypeError('offline'));
  };
  return state;
});
// There is no service to start runs.
vi.mock('@/api/runs', async (original) => ({
  ...(await original<object>()),
  createRuns: vi.fn(),
  forkRun: vi.fn(),
}));
vi.mock('@/api/sweeps', async (original) => ({ ...(await original<object>()), createSweep: vi.fn() }));

const onSweepStarted = vi.fn();

/** For the links of the form, which lead nowhere here. */
const ROUTER = createRouter({ routeTree: createRootRoute(), history: createMemoryHistory() });

const CATALOGUE = {
  algorithms: [
    {
      id: 'paac',
      title: 'PAAC',
      observations: ['vector'],
      actions: ['discrete'],
      presets: [
        {
          id: 'small',
          title: 'Small environment',
          description: 'Trains in minutes.',
          measured_on: 'two cores',
          measured: '',
          observation: 'vector',
          actions: [],
          families: [],
          environments: [],
          config: { n_e: 8 },
          environment_config: {},
          stop: { agent_steps: 100_000 },
        },
      ],
      config_schema: {
        properties: {
          learning_rate: { title: 'Learning rate', type: 'number', default: 0.001, common: true },
          n_e: { title: 'Environments', type: 'integer', minimum: 1, default: 32, common: true },
          optimizer: { title: 'Optimizer', enum: ['adam', 'rmsprop'], default: 'adam', shape: true },
        },
      },
      defaults: {},
      reproducibility: 'none',
    },
  ],
  environments: [
    {
      id: 'CartPole-v1',
      title: 'CartPole',
      family: 'classic',
      observation: 'vector',
      actions: 'discrete',
      config_schema: {},
      defaults: {},
      frames_per_agent_step: 1,
      extra: 'small',
    },
  ],
} as unknown as Catalogue;

/** The request for an estimate of the preset's run. */
const ESTIMATED = {
  algorithm: 'paac',
  environment: 'CartPole-v1',
  config: { n_e: 8 },
  environment_config: {},
  stop: { agent_steps: 100_000 },
  seed: 0,
  tags: [],
  notes: '',
  project: 'default',
  device: 'auto',
  queue: 'cpu',
  priority: 0,
};

type Options = {
  role?: string;
  hostEnvironments?: string[];
  warnings?: string[];
  missingExtras?: string[];
  /** Of the run `parent`, for a fork. */
  checkpoint?: string;
  checkpoints?: { id: string; agent_steps: number }[];
  host?: string;
};

function show({
  role = 'operator',
  hostEnvironments = ['CartPole-v1'],
  warnings = [],
  missingExtras = [],
  checkpoint,
  checkpoints = [{ id: 'latest', agent_steps: 9_000 }],
  host = '',
}: Options = {}): QueryClient {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  // Nothing can be fetched again after a start.
  vi.spyOn(client, 'invalidateQueries').mockResolvedValue();
  client.setQueryData(keys.me(), { id: 'u', name: 'ada', role });
  client.setQueryData(keys.hosts(), {
    items: [
      {
        id: 'h',
        alive: true,
        environments: hostEnvironments,
        missing_extras: missingExtras,
        queues: ['cpu'],
        devices: ['cpu'],
      },
    ],
  });
  const query = {
    algorithm: ['paac'],
    environment: ['CartPole-v1'],
    archived: 'all',
    sort: '-agent_steps',
    limit: 10,
  };
  const estimate: RunEstimate = { memory_bytes: 3 * 2 ** 30, warnings };
  client.setQueryData(keys.estimate(ESTIMATED), estimate);
  client.setQueryData(keys.runs(query), { pages: [{ items: [], total: 0 }], pageParams: [null] });
  client.setQueryData(keys.runResource('parent', 'checkpoints'), {
    pages: [{ items: checkpoints, next_cursor: checkpoints.length > 0 ? 'next' : null }],
    pageParams: [null],
  });
  const parent = { id: 'parent', name: 'a run', algorithm: 'paac', environment: 'CartPole-v1' } as Run;
  function Page() {
    const [all, setAll] = useState(false);
    return (
      <LaunchForm
        name="new"
        catalogue={CATALOGUE}
        initialDraft={{ ...newDraft(CATALOGUE, {}), host }}
        {...(checkpoint !== undefined && { parent, checkpoint })}
        all={all}
        onAll={setAll}
        onStarted={() => undefined}
        onSweepStarted={onSweepStarted}
      />
    );
  }
  render(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <RouterContextProvider router={ROUTER as never}>
          <Page />
        </RouterContextProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return client;
}

const field = (path: string): HTMLInputElement =>
  document.getElementById(`field-${path}`) as HTMLInputElement;
const type = (path: string, value: string): void => void fireEvent.change(field(path), { target: { value } });
const start = (): HTMLElement => screen.getByRole('button', { name: /^Start/ });
const submit = (): void => {
  const form = start().closest('form');
  expect(form).not.toBeNull();
  if (form) fireEvent.submit(form);
};

/** Until what an event has started has reached the service, or would have. */
const settled = (event: () => void): Promise<void> =>
  act(async () => {
    event();
    await Promise.resolve();
  });

// happy-dom has no fonts, which Mantine's text area watches.
Object.defineProperty(document, 'fonts', { value: new EventTarget() });

beforeEach(() => void vi.mocked(createRuns).mockResolvedValue([{ id: 'r' } as Run]));
afterEach(() => {
  cleanup();
  sessionStorage.clear();
  service.refuses = null;
  service.older = null;
  vi.resetAllMocks();
});

describe('LaunchForm', () => {
  it('shows the checkpoint that is forked though it is not among the latest', async () => {
    service.older = { items: [{ id: 'older', agent_steps: 1_000 }], next_cursor: null };
    show({ checkpoint: 'older' });
    const select = screen.getByRole<HTMLSelectElement>('combobox', { name: 'Checkpoint' });
    await waitFor(() => expect(select.selectedOptions[0]?.textContent).toBe('at 1,000 agent steps'));
    expect(screen.queryByRole('button', { name: 'Load older checkpoints' })).toBeNull();
  });

  it('does not repeat a refused request for older checkpoints', async () => {
    service.refuses = {};
    service.requestedOlder = 0;
    show({ checkpoint: 'older' });
    await waitFor(() => expect(service.requestedOlder).toBe(1));
    for (let turn = 0; turn < 20; turn += 1) await settled(() => undefined);
    expect(service.requestedOlder).toBe(1);
  });

  it('keeps what a fork’s checkpoint was built for, and says why', () => {
    show({ checkpoint: 'latest' });
    fireEvent.click(screen.getByRole('button', { name: /^All \d+ hyperparameters/ }));
    expect(field('config.optimizer').disabled).toBe(true);
    expect(field('config.n_e').disabled).toBe(false);
    expect(screen.getByText('A fork keeps it: the checkpoint’s network was built for it.')).toBeTruthy();
  });

  it('starts no fork of a run without a checkpoint', () => {
    show({ checkpoint: 'latest', checkpoints: [] });
    expect(screen.getByText('The run has no checkpoint to fork from.')).toBeTruthy();
    submit();
    expect(forkRun).not.toHaveBeenCalled();
  });

  it('repeats a fork under the same key, and one of another checkpoint under a new one', async () => {
    vi.mocked(forkRun).mockRejectedValue(new TypeError('offline'));
    show({ checkpoint: 'latest' });
    await settled(submit);
    await waitFor(() => expect(screen.getByRole('alert')).not.toBeNull());
    await settled(submit);
    fireEvent.change(screen.getByRole('combobox', { name: 'Checkpoint' }), { target: { value: '' } });
    await settled(submit);
    await waitFor(() => expect(vi.mocked(forkRun)).toHaveBeenCalledTimes(3));
    const [first, again, other] = vi.mocked(forkRun).mock.calls.map(([, , key]) => key);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it('restores the checkpoint that was chosen, but for an address with another one', async () => {
    service.older = { items: [{ id: 'older', agent_steps: 1_000 }], next_cursor: null };
    const chosen = (): string =>
      screen.getByRole<HTMLSelectElement>('combobox', { name: 'Checkpoint' }).value;
    show({ checkpoint: 'latest' });
    fireEvent.change(screen.getByRole('combobox', { name: 'Checkpoint' }), { target: { value: '' } });
    cleanup();
    show({ checkpoint: 'latest' });
    expect(chosen()).toBe('');
    fireEvent.click(screen.getByRole('button', { name: 'Reset form' }));
    expect(chosen()).toBe('latest');
    fireEvent.change(screen.getByRole('combobox', { name: 'Checkpoint' }), { target: { value: '' } });
    cleanup();
    show({ checkpoint: 'older' });
    await waitFor(() => expect(chosen()).toBe('older'));
  });

  it('loads older checkpoints to fork from on request', async () => {
    service.older = { items: [{ id: 'older', agent_steps: 1_000 }], next_cursor: null };
    show({ checkpoint: 'latest' });
    expect(screen.queryByRole('option', { name: 'at 1,000 agent steps' })).toBeNull();
    fireEvent.click(screen.getByRole('button', { name: 'Load older checkpoints' }));
    expect(await screen.findByRole('option', { name: 'at 1,000 agent steps' })).not.toBeNull();
  });

  it('shows presets and what people change, and all hyperparameters on request, with a search', () => {
    show();
    expect(screen.getByRole('radio', { name: 'Small environment' }).getAttribute('aria-checked')).toBe(
      'true',
    );
    expect(field('config.n_e').value).toBe('8');
    expect(field('config.optimizer')).toBeNull();
    const all = screen.getByRole('button', { name: 'All 3 hyperparameters' });
    fireEvent.click(all);
    expect(all.getAttribute('aria-expanded')).toBe('true');
    expect(field('config.optimizer')).not.toBeNull();
    const search = screen.getByRole('searchbox', { name: 'Search hyperparameters' });
    fireEvent.change(search, { target: { value: 'optim' } });
    expect(field('config.optimizer')).not.toBeNull();
    expect(field('config.n_e')).toBeNull();
  });

  it('marks and counts only what differs from the preset, to which a reset returns', () => {
    show();
    const marked = (): number => document.querySelectorAll('[data-changed]').length;
    expect(marked()).toBe(0);
    expect(screen.getByText('0 changed from the preset')).toBeTruthy();
    expect(screen.getByText('preset 8 · default 32 · at least 1')).toBeTruthy();
    type('config.n_e', '32');
    expect(marked()).toBe(1);
    expect(screen.getByText('1 changed from the preset')).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Reset Environments to the preset' }));
    expect(field('config.n_e').value).toBe('8');
    expect(marked()).toBe(0);
  });

  it('counts from the defaults without a preset, and requests what differs from them', async () => {
    show();
    fireEvent.click(screen.getByRole('radio', { name: 'Defaults' }));
    expect(screen.getByText('0 changed from the defaults')).toBeTruthy();
    expect(field('config.n_e').value).toBe('32');
    type('config.n_e', '8');
    expect(screen.getByText('1 changed from the defaults')).toBeTruthy();
    submit();
    await waitFor(() => expect(createRuns).toHaveBeenCalledOnce());
    expect(vi.mocked(createRuns).mock.calls[0]?.[0]).toMatchObject({ config: { n_e: 8 } });
  });

  it('shows what an empty limit stands for as its placeholder', () => {
    show();
    expect(field('stop.wall_time_s').placeholder).toBe('no limit');
    expect(screen.queryByText(/default none/)).toBeNull();
  });

  it('restores what was entered until it is started or reset', async () => {
    const reopen = (): void => {
      cleanup();
      show();
    };
    show();
    reopen();
    expect(screen.queryByRole('button', { name: 'Reset form' })).toBeNull(); // nothing was entered
    type('config.learning_rate', '0.5');
    reopen();
    expect(field('config.learning_rate').value).toBe('0.5');
    fireEvent.click(screen.getByRole('button', { name: 'Reset form' }));
    expect(field('config.learning_rate').value).toBe('0.001');
    reopen();
    expect(field('config.learning_rate').value).toBe('0.001');
    type('config.learning_rate', '0.25');
    submit();
    await waitFor(() => expect(createRuns).toHaveBeenCalledOnce());
    await settled(() => undefined);
    reopen();
    expect(field('config.learning_rate').value).toBe('0.001');
  });

  it('keeps a field in view after it was changed and folded away', () => {
    show();
    const all = screen.getByRole('button', { name: 'All 3 hyperparameters' });
    fireEvent.click(all);
    fireEvent.change(field('config.optimizer'), { target: { value: 'rmsprop' } });
    fireEvent.click(all);
    expect(field('config.optimizer').value).toBe('rmsprop');
  });

  it('reaches the start button from its first field with six tabs', () => {
    show();
    const tabbable = [...document.querySelectorAll<HTMLElement>('form *')]
      .filter((element) => element.tabIndex >= 0)
      .indexOf(start());
    expect(tabbable).toBe(5);
  });

  it('starts one run for each value and seed, in one request with a group', async () => {
    show();
    type('config.learning_rate', '0.001, 0.003, 0.01');
    expect(screen.getByText(/^3 values: 0.001, 0.003, 0.01$/)).toBeTruthy();
    fireEvent.change(screen.getByLabelText(/^Number of seeds/), { target: { value: '2' } });
    expect(start().textContent).toBe('Start 6 runs');
    expect(screen.getByRole('status', { name: 'Cost' }).textContent).toContain('6 runs, each 100');
    submit();
    await waitFor(() => expect(createRuns).toHaveBeenCalledOnce());
    expect(vi.mocked(createRuns).mock.calls[0]?.[0]).toMatchObject({
      grid: { 'config.learning_rate': [0.001, 0.003, 0.01] },
      config: { n_e: 8 },
      group: 'paac CartPole by learning_rate',
      seeds: [0, 1],
    });
  });

  it('starts a sweep over the fields with several values, and opens it', async () => {
    vi.mocked(createSweep).mockResolvedValue({ id: 's' } as Sweep);
    show();
    expect(screen.queryByRole('checkbox', { name: 'Start as a sweep' })).toBeNull();
    type('config.learning_rate', '0.001, 0.003, 0.01');
    fireEvent.click(screen.getByRole('checkbox', { name: 'Start as a sweep' }));
    const atMost = screen.getByRole('textbox', { name: 'Seeds of each combination, at most' });
    fireEvent.change(atMost, { target: { value: '2' } });
    expect(screen.getByText('Enter a whole number from 3 to 100.')).toBeTruthy();
    fireEvent.change(atMost, { target: { value: '20' } });
    expect(start().textContent).toBe('Start sweep');
    expect(screen.getByRole('status', { name: 'Cost' }).textContent).toContain('at most 60 runs, each 100');
    expect(screen.queryByLabelText(/^Number of seeds/)).toBeNull();
    submit();
    await waitFor(() => expect(onSweepStarted).toHaveBeenCalledWith('s'));
    expect(createRuns).not.toHaveBeenCalled();
    expect(vi.mocked(createSweep).mock.calls[0]?.[0]).toEqual({
      name: 'paac on CartPole',
      notes: '',
      run: {
        algorithm: 'paac',
        environment: 'CartPole-v1',
        config: { n_e: 8 },
        environment_config: {},
        stop: { agent_steps: 100_000 },
        project: 'default',
        tags: [],
        device: 'auto',
        queue: 'cpu',
        priority: 0,
      },
      space: { 'config.learning_rate': { values: [0.001, 0.003, 0.01] } },
      max_seeds: 20,
    });
  });

  it('asks for seeds of its own for each combination of a sweep', async () => {
    show();
    type('config.learning_rate', '0.001, 0.003');
    fireEvent.click(screen.getByRole('checkbox', { name: 'Start as a sweep' }));
    fireEvent.click(screen.getByRole('checkbox', { name: 'Seeds of its own for each combination' }));
    submit();
    await waitFor(() => expect(createSweep).toHaveBeenCalled());
    expect(vi.mocked(createSweep).mock.calls[0]?.[0]).toMatchObject({ distinct_seeds: true, max_seeds: 10 });
  });

  it('shows the errors of a sweep at the fields of the form', async () => {
    const errors = [
      { field: 'space.config.learning_rate', message: 'too high' },
      { field: 'run.config.n_e', message: 'too many' },
      { field: 'max_seeds', message: 'too many seeds' },
      { field: 'space', message: 'has too many combinations' },
    ];
    vi.mocked(createSweep).mockRejectedValue(toProblem(422, { errors }));
    show();
    type('config.learning_rate', '0.001, 0.003');
    fireEvent.click(screen.getByRole('checkbox', { name: 'Start as a sweep' }));
    submit();
    const summary = await screen.findByText(/^Not started/);
    expect(summary.textContent).toContain('The sweep has too many combinations.');
    expect(summary.textContent).toContain('Learning rate, Environments, Seeds of each combination, at most');
    for (const message of ['too high', 'too many', 'too many seeds'])
      expect(screen.getByText(message)).toBeTruthy();
    expect(document.activeElement).toBe(field('config.learning_rate'));
  });

  it('takes several values of a choice, and returns to one', () => {
    show();
    fireEvent.click(screen.getByRole('button', { name: 'All 3 hyperparameters' }));
    const several = screen.getByRole('button', { name: '+ values of Optimizer' });
    fireEvent.click(several);
    expect(field('config.optimizer').value).toBe('adam, rmsprop');
    expect(start().textContent).toBe('Start 2 runs');
    fireEvent.click(several);
    expect(field('config.optimizer').tagName).toBe('SELECT');
    expect(start().textContent).toBe('Start run');
  });

  it('refuses more than 100 runs', async () => {
    show();
    type('config.n_e', '1..60');
    fireEvent.change(screen.getByLabelText(/^Number of seeds/), { target: { value: '2' } });
    expect(screen.getByText(/This would start 120 runs; at most 100/)).toBeTruthy();
    await settled(submit);
    expect(createRuns).not.toHaveBeenCalled();
  });

  it('repeats a failed request with its key, and sends a changed one with another', async () => {
    vi.mocked(createRuns).mockRejectedValue(new TypeError('network'));
    show();
    for (const rate of ['0.002', '0.002', '0.003']) {
      type('config.learning_rate', rate);
      const before = vi.mocked(createRuns).mock.calls.length;
      submit();
      await waitFor(() => expect(createRuns).toHaveBeenCalledTimes(before + 1));
      await screen.findByText(/Not started/);
    }
    const [first, again, changed] = vi.mocked(createRuns).mock.calls.map(([, key]) => key);
    expect(again).toBe(first);
    expect(changed).not.toBe(first);
  });

  it('shows the host of a copied run though it is no longer registered, and offers the others', async () => {
    show({ host: 'old' });
    const select = screen.getByRole<HTMLSelectElement>('combobox', { name: 'Host' });
    expect(select.value).toBe('old');
    expect([...select.options].map(({ text }) => text)).toEqual(['any host', 'h', 'old (not registered)']);
    submit();
    await waitFor(() => expect(createRuns).toHaveBeenCalledOnce());
    expect(vi.mocked(createRuns).mock.calls[0]?.[0]).toMatchObject({ host: 'old' });
  });

  it('shows why a viewer cannot start runs', async () => {
    show({ role: 'viewer' });
    expect(screen.getByText('Requires the role operator; your role is viewer.')).toBeTruthy();
    expect(start().getAttribute('aria-disabled')).toBe('true');
    await settled(submit);
    expect(createRuns).not.toHaveBeenCalled();
  });

  it('shows before the start what no host can run well, and what memory a run may need', () => {
    show({ warnings: ['it may need 3.0 GiB of memory: a fits', '131 processes on 2 cores: a fits'] });
    expect(screen.getAllByRole('note').map(({ textContent }) => textContent)).toEqual([
      'It may need 3.0 GiB of memory: a fits.',
      '131 processes on 2 cores: a fits.',
    ]);
    expect(screen.getByRole('status', { name: 'Cost' }).textContent).toMatch(/at most 3\.0\sGiB of memory/);
    expect(start().getAttribute('aria-disabled')).not.toBe('true');
  });

  it('asks again what a run needs for what is typed, not for its name', async () => {
    const client = show();
    const asked = () =>
      client
        .getQueryCache()
        .findAll({ queryKey: keys.estimate(undefined).slice(0, -1) })
        .map(({ queryKey }) => queryKey.at(-1));
    fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'first light' } });
    fireEvent.change(screen.getByLabelText(/^Number of seeds/), { target: { value: '3' } });
    type('config.n_e', '16, 64');
    await waitFor(() => expect(asked()).toHaveLength(2));
    expect(asked()).toEqual([ESTIMATED, { ...ESTIMATED, config: {}, grid: { 'config.n_e': [16, 64] } }]);
  });

  it('shows at its field what the service refuses, before the start', async () => {
    service.refuses = { errors: [{ field: 'config.n_e', message: 'too many for this network' }] };
    show();
    type('config.n_e', '64');
    await screen.findByText('too many for this network');
    expect(field('config.n_e').getAttribute('aria-invalid')).toBe('true');
  });

  it('gives the focus to the search for environments, except on a touch device and while the user types', () => {
    const search = () => screen.getByRole('combobox', { name: 'Search environments' });
    show();
    expect(document.activeElement).toBe(search());
    cleanup();
    const coarse = vi.spyOn(window, 'matchMedia').mockImplementation(
      (query) =>
        ({
          matches: query === '(pointer: coarse)',
          addEventListener: () => undefined,
          removeEventListener: () => undefined,
        }) as unknown as MediaQueryList,
    );
    show();
    expect(document.activeElement).not.toBe(search());
    cleanup();
    coarse.mockRestore();
    const other = document.body.appendChild(document.createElement('input'));
    other.focus();
    show();
    expect(document.activeElement).toBe(other);
    other.remove();
  });

  it('shows the extra that every host lacks, and starts nothing', () => {
    show({ hostEnvironments: [], missingExtras: ['small'] });
    const reason =
      "CartPole needs callboard[small], which no host has. On one: pip install 'callboard[small]'.";
    expect(screen.getByRole('note').textContent).toBe(reason);
    expect(screen.getByRole('option', { name: /CartPole/ }).textContent).toContain('not installed');
    const start = screen.getByRole('button', { name: /^Start/ });
    expect([start.getAttribute('aria-disabled'), start.title]).toEqual(['true', reason]);
  });

  it('shows that no host can run the environment', () => {
    show({ hostEnvironments: [] });
    expect(screen.getByRole('note').textContent).toContain('The connected host cannot run CartPole.');
    expect(screen.getByRole('option', { name: /CartPole/ }).textContent).toContain('no host');
  });
});
