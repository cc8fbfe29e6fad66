import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { type ReactNode, useState } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { EPISODE_RETURN, type Spread } from '@/api/series';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import type { Panel } from '@/components/run/panels';
import { CompareCharts } from './CompareCharts';
import type { PanelPage } from './panels/kinds';

const service = vi.hoisted(() => {
  const state = { requests: [] as URL[], answers: false };
  const empty = { data: [], layout: {}, revisions: [1, 1], n_total: 0, n_shown: 0, bands: [], scales: [] };
  globalThis.fetch = (request) => {
    const { pathname, searchParams } = new URL((request as Request).url);
    state.requests.push(new URL(`${pathname}?${searchParams}`, 'http://service'));
    if (!state.answers || pathname !== '/api/v1/figures') return new Promise(() => undefined);
    return Promise.resolve(Response.json({ items: [empty] }));
  };
  return state;
});
const { requests } = service;

beforeEach(() => {
  requests.length = 0;
  service.answers = false;
  vi.stubGlobal('IntersectionObserver', InView);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** Every chart is in the viewport. */
class InView {
  constructor(private readonly callback: (entries: object[]) => void) {}
  observe = (): void => this.callback([{ isIntersecting: true }]);
  disconnect = (): void => undefined;
}

const RUNS = ['00000000000000000000000001', '00000000000000000000000002'];
const MEDIAN: Spread = { centre: 'median', interval: 'ci95', seeds: false };

/** Renders a page whose runs have recorded three metrics. */
function renderPage(page: ReactNode) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const recorded = ['loss/entropy', 'loss/value', 'system/cpu_percent'];
  client.setQueryData(
    keys.metrics(RUNS),
    recorded.map((metric) => ({ metric, title: metric, n_runs: 2 })),
  );
  const wrapper = ({ children }: { children: ReactNode }) => (
    <MantineProvider env="test">
      <QueryClientProvider client={client}>{children}</QueryClientProvider>
    </MantineProvider>
  );
  return { client, ...render(page, { wrapper }) };
}

const lines = (metrics: readonly string[]): Panel[] =>
  metrics.map((metric) => ({ kind: 'lines', metrics: [metric] }));

const page = (grouped: boolean, spread: Spread): PanelPage => ({
  rows: [],
  grouped,
  runs: RUNS,
  visible: [],
  compared: [],
  environments: [],
  hidden: new Set(),
  notDrawn: new Set(),
  onHidden: () => undefined,
  spread,
  styles: new Map(),
  groupStyles: [],
  verdict: { score: 'training', at: 'common', protocol: undefined },
  titles: new Map(),
});

type More = { metrics?: string[]; environments?: string[]; grouped?: boolean; spread?: Spread };

function show({ metrics = [], grouped = false, spread = MEDIAN, ...more }: More = {}) {
  const reported = { onPanels: vi.fn(), onSpread: vi.fn(), onSearch: vi.fn() };
  const { onSearch, ...charts } = reported;
  renderPage(
    <CurveViewProvider search={{}} onSearch={onSearch}>
      <CompareCharts
        runs={RUNS}
        scoredBy=""
        trainedS={0}
        environments={['ALE/Pong-v5']}
        panels={lines(metrics)}
        tab={undefined}
        onTab={() => undefined}
        page={page(grouped, spread)}
        hidden={new Set()}
        {...charts}
        {...more}
      />
    </CurveViewProvider>,
  );
  return reported;
}

const search = () => screen.getByRole<HTMLInputElement>('combobox', { name: 'Add a metric' });
const choose = (name: string, value: string) =>
  fireEvent.change(screen.getByRole('combobox', { name }), { target: { value } });

it('Enter adds the first metric that matches', () => {
  const { onPanels } = show({ metrics: ['loss/value'] });
  fireEvent.change(search(), { target: { value: 'LOSS' } });
  fireEvent.keyDown(search(), { key: 'Enter', code: 'Enter' });
  // `loss/value` has its panel already.
  expect(onPanels).toHaveBeenCalledExactlyOnceWith(lines(['loss/value', 'loss/entropy']));
  expect(search().value).toBe('');
});

it('a metric that no run has is reported, and not added', () => {
  const { onPanels } = show();
  fireEvent.change(search(), { target: { value: 'entropie' } });
  fireEvent.keyDown(search(), { key: 'Enter', code: 'Enter' });
  expect(screen.getByText('None of these runs has such a metric.')).toBeTruthy();
  expect(onPanels).not.toHaveBeenCalled();
});

it('groups over seeds have a line and a band', () => {
  show();
  expect(screen.queryByRole('combobox', { name: 'Band' })).toBeNull();
  cleanup();
  const { onSpread } = show({ grouped: true });
  choose('Line', 'iqm');
  expect(onSpread).toHaveBeenLastCalledWith({ ...MEDIAN, centre: 'iqm' });
  choose('Band', 'min_max');
  expect(onSpread).toHaveBeenLastCalledWith({ ...MEDIAN, interval: 'min_max' });
  fireEvent.click(screen.getByRole('checkbox', { name: 'Single seeds' }));
  expect(onSpread).toHaveBeenLastCalledWith({ ...MEDIAN, seeds: true });
});

it('the band over seeds is explained', async () => {
  show({ grouped: true });
  fireEvent.click(screen.getByRole('button', { name: 'What the band shows' }));
  expect((await screen.findByRole('dialog')).textContent).toMatch(/^Band/);
});

it('a median has no standard error', () => {
  const { onSpread } = show({ grouped: true, spread: { ...MEDIAN, centre: 'mean', interval: 'se' } });
  choose('Line', 'median');
  expect(onSpread).toHaveBeenLastCalledWith(MEDIAN);
  cleanup();
  show({ grouped: true });
  for (const name of ['SE', 'Bootstrap, 95 %'])
    expect(screen.getByRole<HTMLOptionElement>('option', { name }).disabled).toBe(true);
});

it('the x axis and the smoothing of all panels are chosen once', () => {
  const { onSearch } = show();
  choose('X axis', 'clock_time_s');
  expect(onSearch).toHaveBeenLastCalledWith(expect.objectContaining({ x: 'clock_time_s' }));
  choose('Smoothing', 'ema');
  expect(onSearch).toHaveBeenLastCalledWith(expect.objectContaining({ smoothing: 'ema' }));
});

/** The query of each request of a path. */
const sent = (path: string): Record<string, string>[] =>
  requests.flatMap(({ pathname, searchParams }) =>
    pathname === path ? [Object.fromEntries(searchParams)] : [],
  );

type PageProps = { trainedS?: number; initial?: readonly string[] };

function Page({ trainedS = 0, initial = [] }: PageProps) {
  const [panels, setPanels] = useState<readonly Panel[]>(lines(initial));
  const [grouped, setGrouped] = useState(false);
  const [spread, setSpread] = useState(MEDIAN);
  const [view, setView] = useState({});
  return (
    <CurveViewProvider search={view} onSearch={setView}>
      <button onClick={() => setGrouped(true)}>Group</button>
      <CompareCharts
        runs={RUNS}
        scoredBy=""
        trainedS={trainedS}
        environments={['ALE/Pong-v5']}
        panels={panels}
        onPanels={setPanels}
        tab={undefined}
        onTab={() => undefined}
        page={page(grouped, spread)}
        onSpread={setSpread}
        hidden={new Set()}
      />
    </CurveViewProvider>
  );
}

it('a panel requests its metric as the controls are set, until it is removed', async () => {
  renderPage(<Page />);
  fireEvent.change(search(), { target: { value: 'entropy' } });
  fireEvent.keyDown(search(), { key: 'Enter', code: 'Enter' });
  await vi.waitFor(() => expect(sent('/api/v1/figures')).toHaveLength(1));
  const added = requests.find(({ pathname }) => pathname === '/api/v1/figures')?.searchParams;
  expect(added?.getAll('run')).toEqual(RUNS);
  expect(added?.getAll('figure')).toEqual(['curve:loss/entropy']);
  expect(added?.get('x')).toBe('agent_steps');

  choose('X axis', 'clock_time_s');
  choose('Smoothing', 'ema');
  await vi.waitFor(() =>
    expect(sent('/api/v1/figures').at(-1)).toMatchObject({
      x: 'clock_time_s',
      smoothing: 'ema',
    }),
  );
  fireEvent.click(screen.getByRole('button', { name: 'Group' }));
  choose('Line', 'iqm');
  choose('Band', 'min_max');
  const groups = { centre: 'iqm', interval: 'min_max', x: 'clock_time_s' };
  await vi.waitFor(() =>
    expect(sent('/api/v1/figures').at(-1)).toMatchObject({
      ...groups,
      figure: 'seed_curve:loss/entropy',
    }),
  );

  fireEvent.click(screen.getByRole('button', { name: 'Options for comparison loss entropy' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Remove' }));
  expect(screen.queryByRole('button', { name: 'Options for comparison loss entropy' })).toBeNull();
});

it('runs of several environments have a panel for each of them', async () => {
  show({ metrics: ['loss/value'], environments: ['ALE/Pong-v5', 'CartPole-v1'] });
  expect(screen.getByText('loss/value · Pong')).toBeTruthy();
  expect(screen.getByText('loss/value · CartPole')).toBeTruthy();
  await vi.waitFor(() =>
    expect(sent('/api/v1/figures').map(({ environment }) => environment)).toEqual([
      'ALE/Pong-v5',
      'CartPole-v1',
    ]),
  );
});

it('evaluations of a compared run are drawn at once, and its checkpoints with the next points', async () => {
  service.answers = true;
  const withTime = (trainedS: number) => <Page trainedS={trainedS} initial={[EPISODE_RETURN]} />;
  const { client, rerender } = renderPage(withTime(19));
  const refetched = (n: number) => {
    expect(sent('/api/v1/figures')).toHaveLength(n);
    return sent('/api/v1/figures').at(-1)?.layout;
  };
  await screen.findByText('None of these runs has finished an episode yet.');
  void client.refetchQueries({ queryKey: keys.marks(RUNS[1] ?? '') });
  await waitFor(() => expect(refetched(2)).toBe('true'));
  await waitFor(() => expect(client.isFetching()).toBe(0));
  rerender(withTime(21));
  void client.refetchQueries({ queryKey: ['run', RUNS] });
  await waitFor(() => expect(refetched(3)).toBe('true'));
});
