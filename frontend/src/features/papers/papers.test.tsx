import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Paper, PaperItem, Study, StudyDetail, StudyTable } from '@/api/studies';
import { PaperCard } from './PaperCard';
import { PublishedTable } from './PublishedTable';
import { ReproduceDialog } from './ReproduceDialog';
import { nothingText, partsOf, progressText, runsText, shownState } from './studyState';
import { StudyRuns } from './StudyProgress';
import { StudyTableView } from './StudyTableView';

const requests = vi.hoisted(() => {
  const state = {
    sent: [] as { path: string; body: unknown }[],
    sets: [] as unknown[],
    studies: [] as unknown[],
    cells: [] as unknown[],
  };
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const path = new URL(request.url).pathname;
    const body: unknown = request.method === 'POST' ? await request.clone().json() : null;
    state.sent.push({ path, body });
    if (path.endsWith('/start-sets')) return Response.json({ items: state.sets, next_cursor: null });
    if (path.endsWith('/estimate'))
      return Response.json({
        n_runs: 24,
        n_reused: 4,
        agent_steps: 400_000,
        time_s: 240,
        minutes_on_two_cores: 5,
        memory_bytes: 2 ** 30,
        processes: 131,
        disk_bytes: 2 ** 20,
        warnings: ['Gorila DQN: it needs about 700 GiB of memory'],
        slots: 2,
        unmeasured: [],
        differs: [],
      });
    if (path.endsWith('/cells')) return Response.json({ items: state.cells, next_cursor: null });
    if (path.endsWith('/studies') && request.method === 'GET')
      return Response.json({ items: state.studies, next_cursor: null });
    if (path.endsWith('/me')) return Response.json({ role: 'operator', name: 'ada' });
    return Response.json({ id: 'S1' }, { status: 201 });
  };
  return state;
});

afterEach(() => {
  cleanup();
  requests.sent.length = 0;
});

const STUDY = {
  id: 'S',
  name: 'A3C Figure 2, minutes',
  scale: 'minutes',
  state: 'running',
  n_runs: 24,
  runs: { finished: 12, running: 2, waiting: 9, failed: 1 },
  created_at: '2026-01-01T00:00:00Z',
} as unknown as Study;

const ITEM = {
  id: 'a3c-figure-2',
  label: 'Figure 2',
  title: 'Learning rates',
  shape: 'scatter',
  claim: 'It is robust.',
  needs: '',
  page: '',
  extra: false,
  studies: [],
  scales: [
    { scale: 'minutes', n_runs: 24, differs: ['CartPole instead of five games'] },
    { scale: 'paper', n_runs: 250, differs: ['nothing'] },
  ],
} as unknown as PaperItem;

const PAPER = { id: 'a3c', short: 'A3C', items: [ITEM] } as unknown as Paper;

async function show(content: ReactNode): Promise<void> {
  const rootRoute = createRootRoute({
    component: () => (
      <MantineProvider env="test">
        <QueryClientProvider client={new QueryClient()}>{content}</QueryClientProvider>
      </MantineProvider>
    ),
  });
  const routes = ['/', '/studies/$studyId', '/runs/$runId'].map((path) =>
    createRoute({ getParentRoute: () => rootRoute, path }),
  );
  const router = createRouter({
    routeTree: rootRoute.addChildren(routes),
    history: createMemoryHistory({ initialEntries: ['/'] }),
  });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

it('counts the cells of a study by how far their runs are', () => {
  expect(partsOf(STUDY.runs)).toEqual({ n: 24, finished: 12, training: 2, active: 2, failed: 1 });
  expect(progressText(STUDY)).toBe('12 of 24 runs');
  expect(runsText({ finished: 2, queued: 0 }, true)).toBe('2 finished');
  expect(runsText({ waiting: 2 }, true)).toBe('2 waiting');
  expect(runsText({ waiting: 2 }, false)).toBe('2 not started');
  expect(runsText({}, true)).toBe('none');
});

it.each([
  [{ queued: 3 }, 'queued'],
  [{ finished: 1, waiting: 2 }, 'queued'],
  [{ queued: 2, running: 1 }, 'running'],
])('a running study with %o is shown as %s', (runs, state) => {
  expect(shownState({ state: 'running', runs }).state).toBe(state);
});

it('shows the claim of a figure, its studies, and what it needs', async () => {
  const onReproduce = vi.fn();
  const shown = { ...ITEM, studies: [STUDY] };
  await show(
    <>
      <PaperCard paper={PAPER} item={shown} onReproduce={onReproduce} />
      <PaperCard
        paper={PAPER}
        item={{ ...ITEM, label: 'Table 1', scales: [], page: '/hosts' }}
        onReproduce={onReproduce}
      />
      <PaperCard
        paper={PAPER}
        item={{ ...ITEM, label: 'Table 9', scales: [], needs: 'games played by people' }}
        onReproduce={onReproduce}
      />
    </>,
  );
  const card = screen.getByRole('region', { name: /Figure 2/ });
  expect(within(card).getByText('It is robust.')).toBeTruthy();
  expect(within(card).getByRole('link', { name: 'minutes' }).getAttribute('href')).toBe('/studies/S');
  expect(within(card).getByText(/12 of 24 runs/)).toBeTruthy();
  fireEvent.click(within(card).getByRole('button', { name: 'Reproduce Figure 2 of A3C' }));
  expect(onReproduce).toHaveBeenCalledWith(shown);
  expect(
    within(card)
      .getByRole('link', { name: /^Evidence/ })
      .getAttribute('href'),
  ).toBe('/help/project/evidence.html#a3c-figure-2');
  const table = screen.getByRole('region', { name: /Table 1/ });
  expect(
    within(table)
      .getByRole('link', { name: /no run needed/ })
      .getAttribute('href'),
  ).toBe('/hosts');
  expect(within(table).queryByRole('button')).toBeNull();
  expect(screen.getByText('games played by people')).toBeTruthy();
});

it('lists the latest studies of a figure, and all on request', async () => {
  const studies = ['a', 'b', 'c', 'd'].map((id) => ({ ...STUDY, id }));
  requests.studies = [...studies, { ...STUDY, id: 'e' }];
  await show(<PaperCard paper={PAPER} item={{ ...ITEM, studies }} onReproduce={vi.fn()} />);
  const listed = (): (string | null)[] =>
    within(screen.getByRole('list', { name: 'Studies' }))
      .getAllByRole('link')
      .map((link) => link.getAttribute('href'));
  const addresses = (...ids: string[]): string[] => ids.map((id) => `/studies/${id}`);
  expect(listed()).toEqual(addresses('a', 'b', 'c'));
  fireEvent.click(screen.getByRole('button', { name: /^Show all studies/ }));
  await waitFor(() => expect(listed()).toEqual(addresses('a', 'b', 'c', 'd', 'e')));
});

it('says what a study costs before one click starts it', async () => {
  const onStarted = vi.fn();
  await show(<ReproduceDialog paper="A3C" item={ITEM} onClose={() => undefined} onStarted={onStarted} />);
  const dialog = await screen.findByRole('dialog');
  expect(await within(dialog).findByText('CartPole instead of five games')).toBeTruthy();
  const cost = await within(dialog).findByLabelText('Cost');
  expect(cost.textContent).toContain('24 (4 exist)');
  expect(cost.textContent).toContain('about 5 min on two idle cores');
  expect(cost.textContent).toMatch(/1\.0\sGiB of memory131 processes/);
  expect(within(dialog).getByRole('note').textContent).toContain('it needs about 700 GiB of memory.');
  fireEvent.click(within(dialog).getByRole('button', { name: 'Start 20 runs' }));
  await vi.waitFor(() => expect(onStarted).toHaveBeenCalledWith('S1'));
  expect(requests.sent.filter(({ path }) => path === '/api/v1/studies').map(({ body }) => body)).toEqual([
    { item: 'a3c-figure-2', scale: 'minutes', starts: {} },
  ]);
});

it('offers the start sets of its games where the paper needs games played by people', async () => {
  const set = (name: string, environment: string, source: string, state = 'ready') => ({
    name,
    environment,
    source,
    state,
    version: 1,
    caption: `5 starts of ${name}`,
    protocols: [`${source}_starts:${name}@1`, `${source}_starts_greedy:${name}@1`],
  });
  requests.sets = [
    set('new', 'ALE/Assault-v5', 'agent', 'verifying'),
    set('assault', 'ALE/Assault-v5', 'agent'),
    set('old', 'ALE/Assault-v5', 'agent'),
    set('road', 'ALE/RoadRunner-v5', 'agent'),
    set('people', 'ALE/Assault-v5', 'human'),
  ];
  const games = ['ALE/Assault-v5', 'ALE/RoadRunner-v5'];
  const scales = [
    { ...ITEM.scales[0], scale: 'hours', environments: games },
    { ...ITEM.scales[0], scale: 'minutes', environments: ['CartPole-v1'] },
  ];
  const item = { ...ITEM, needs_people: true, scales } as unknown as PaperItem;
  await show(<ReproduceDialog paper="Gorila" item={item} onClose={() => undefined} onStarted={vi.fn()} />);
  const dialog = await screen.findByRole('dialog');
  const people = await within(dialog).findByRole('option', {
    name: /Human starts.*\(1 game without a set\)/,
  });
  expect((people as HTMLOptionElement).disabled).toBe(true);
  fireEvent.change(within(dialog).getByLabelText('Starts of the evaluations'), {
    target: { value: 'agent' },
  });
  expect(within(dialog).getByText('assault v1: 5 starts of assault; road v1: 5 starts of road')).toBeTruthy();
  fireEvent.click(within(dialog).getByRole('button', { name: 'Start 24 runs' }));
  const starts = {
    'ALE/Assault-v5': 'agent_starts:assault@1',
    'ALE/RoadRunner-v5': 'agent_starts:road@1',
  };
  await vi.waitFor(() =>
    expect(requests.sent.filter(({ path }) => path === '/api/v1/studies').map(({ body }) => body)).toEqual([
      { item: 'a3c-figure-2', scale: 'hours', starts },
    ]),
  );
  fireEvent.click(within(dialog).getByRole('radio', { name: 'Minutes' }));
  expect(within(dialog).queryByLabelText('Starts of the evaluations')).toBeNull();
});

it('offers imported games of people as human starts, and those of scripts as agent starts', async () => {
  const set = (source: string) => ({
    ...{ name: source, environment: 'ALE/Assault-v5', source, state: 'ready', version: 1, caption: '' },
    protocols: [`${source}@1`],
  });
  const scales = [{ ...ITEM.scales[0], scale: 'hours', environments: ['ALE/Assault-v5'] }];
  const item = { ...ITEM, needs_people: true, scales } as unknown as PaperItem;
  for (const [source, human, agent] of [
    ['human_imported', '', ' (1 game without a set)'],
    ['scripted', ' (1 game without a set)', ''],
  ] as const) {
    requests.sets = [set(source)];
    await show(<ReproduceDialog paper="Gorila" item={item} onClose={() => undefined} onStarted={vi.fn()} />);
    const missing = await screen.findByRole('option', { name: /1 game without a set/ });
    const options = [...(missing.closest('select')?.options ?? [])].map(({ text }) => text);
    expect(options.slice(1)).toEqual([
      `Human starts: states of games played by people${human}`,
      `Agent starts: states of games played by stored agents or scripts${agent}`,
    ]);
    cleanup();
  }
});

it('says of waiting cells of an ended study that they were not started', async () => {
  const cell = { arm: 'A3C', environment: 'CartPole-v1', settings: {}, seed: 0, agent_steps: 0, score: null };
  const states = ['waiting', 'failed'];
  requests.cells = states.map((state, number) => ({ ...cell, number, run: 'R', name: `r${number}`, state }));
  for (const [state, shown] of [
    ['finished', ['not started', 'failed']],
    ['running', ['waiting', 'failed']],
  ] as const) {
    await show(<StudyRuns study={{ ...STUDY, state, spec: { draws: {} } } as unknown as StudyDetail} />);
    await screen.findByRole('link', { name: 'r1' });
    const rows = screen.getAllByRole('row').slice(1);
    expect(rows.map((row) => within(row).getAllByRole('cell')[1]?.textContent)).toEqual(shown);
    cleanup();
  }
});

it('labels published columns and missing values of a table', async () => {
  const table: StudyTable = {
    columns: [
      { title: 'Environment', how: '', source: 'name', unit: '' },
      { title: 'PAAC', how: 'no-op starts; best of 3 runs', source: 'ours', unit: 'score' },
      { title: 'Gorila', how: 'no-op starts, 5 minutes', source: 'published', unit: '' },
    ],
    rows: [
      {
        label: 'Pong',
        cells: [
          { value: null, low: null, high: null, n: 0, planned: 3 },
          { value: 18.3, low: null, high: null, n: null, planned: null },
        ],
      },
      {
        label: 'Breakout',
        cells: [
          { value: 20, low: null, high: null, n: 2, planned: 3 },
          { value: 313, low: null, high: null, n: null, planned: null },
        ],
      },
    ],
    foot: [],
  };
  await show(<StudyTableView table={table} label="Scores" />);
  expect(screen.getByRole('columnheader', { name: /Gorila/ }).textContent).toContain(
    'published, no-op starts',
  );
  const [ours, published, partial] = screen.getAllByRole('cell');
  expect([ours, published, partial].map((cell) => cell?.textContent)).toEqual(['–', '18.3', '202 of 3 runs']);
  expect(ours?.getAttribute('title')).toBe('0 of 3 runs');
});

it('prints the values of a paper as published, with their source', async () => {
  const table = { columns: ['Method', 'Mean'], rows: [['A3C', '496.8 %']], source: 'Mnih et al. 2016' };
  await show(<PublishedTable table={table} label="Published: Table 1" />);
  expect(screen.getByRole('row', { name: 'A3C 496.8 %' })).toBeTruthy();
  expect(screen.getByText('Published, Mnih et al. 2016.')).toBeTruthy();
});

it('says of a study that has ended without a score what can be done', () => {
  const runs = { failed: 2, deleted: 1 };
  expect(nothingText({ runs, state: 'running' }, 'figure')).toBe(
    'No run has a score yet: the figure fills in as runs finish.',
  );
  expect(nothingText({ runs, state: 'finished' }, 'table')).toBe(
    'No run has a score: 3 runs did not finish as planned. Retry queues them again.',
  );
  expect(nothingText({ runs: { finished: 1 }, state: 'finished' }, 'table')).toBe('No run has a score.');
});
