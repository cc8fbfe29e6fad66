import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { Data, Layout } from 'plotly.js';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ChartPanel } from './ChartPanel';
import { CurveViewProvider } from './CurveViewProvider';

type Drawing = { data: Data[]; layout: Partial<Layout> };

const service = vi.hoisted(() => {
  const drawings: unknown[] = [];
  const answer: { data: object[] } = { data: [] };
  const state = { drawings, answer, n_total: 6, fails: false };
  globalThis.fetch = () => {
    if (state.fails)
      return Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }));
    const n = { n_total: state.n_total, n_shown: state.n_total };
    const figure = {
      ...answer,
      layout: {},
      x: 'agent_steps',
      revisions: [1, 1],
      ...n,
      bands: [],
      scales: [],
    };
    return Promise.resolve(Response.json({ items: [figure] }));
  };
  return state;
});

vi.mock('plotly.js-basic-dist-min', () => {
  const react = (element: HTMLElement, data: Data[], layout: Partial<Layout>) => {
    service.drawings.push({ data, layout });
    return Promise.resolve(Object.assign(element, { on: () => undefined }));
  };
  return { default: { react, purge: () => undefined } };
});

vi.stubGlobal(
  'ResizeObserver',
  class {
    observe = (): void => undefined;
    disconnect = (): void => undefined;
  },
);

beforeEach(() => {
  service.drawings.length = 0;
  service.n_total = 6;
  service.fails = false;
});
afterEach(cleanup);

const line = (run: string) => ({
  type: 'scatter',
  name: run,
  uid: run,
  showlegend: true,
  x: [1, 2, 3],
  y: [1, 2, 3],
  meta: { kind: 'line', run },
});
const EVALUATIONS = { type: 'scatter', name: 'evaluations', x: [1], y: [1], meta: { kind: 'evaluations' } };

/** Shows a figure of these runs, in a chart without room for names. */
function show(runs: readonly string[], ...others: object[]): QueryClient {
  service.answer.data = [...runs.map(line), ...others];
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <ChartPanel
            runs={runs}
            title="Learning curves"
            main
            label="Learning curves of the runs"
            fileName="curves"
            id="curves"
            metrics={['rollout/episode_return']}
            figure={{}}
            height={300}
            points={100}
            empty="No episode yet."
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return client;
}

/** What is drawn of a figure of these runs. */
async function drawn(runs: readonly string[], ...others: object[]): Promise<Drawing> {
  show(runs, ...others);
  return waitFor(() => {
    const last = service.drawings.at(-1);
    expect(last).toBeDefined();
    return last as Drawing;
  });
}

const inLegend = ({ data, layout }: Drawing): unknown[] =>
  layout.showlegend === false
    ? []
    : data.flatMap((trace) => ((trace as { showlegend?: boolean }).showlegend === false ? [] : [trace.name]));

it('names several runs by their list alone, also where their lines have no room for names', async () => {
  expect(inLegend(await drawn(['R', 'S']))).toEqual([]);
  cleanup();
  service.drawings.length = 0;
  expect(inLegend(await drawn(['R', 'S'], EVALUATIONS))).toEqual(['evaluations']);
});

it('distinguishes the training of one run from its evaluations by a legend', async () => {
  expect(inLegend(await drawn(['R'], EVALUATIONS))).toEqual(['R', 'evaluations']);
});

it.each([
  ['a chart', 6, () => screen.getByRole('img', { name: 'Learning curves of the runs' })],
  ['the text of an empty chart', 0, () => screen.getByText('No episode yet.')],
])('keeps %s beside the error of a failed refetch', async (_, n_total, shown) => {
  service.n_total = n_total;
  const client = show(['R']);
  await waitFor(shown);
  service.fails = true;
  await act(() => client.refetchQueries());
  expect((await screen.findByRole('alert')).textContent).toContain('Internal server error');
  expect(shown()).toBeTruthy();
  service.fails = false;
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await waitFor(() => expect(screen.queryByRole('alert')).toBeNull());
});
