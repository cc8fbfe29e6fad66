import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, waitFor } from '@testing-library/react';
import type { Data, Layout } from 'plotly.js';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ChartPanel } from './ChartPanel';
import { CurveViewProvider } from './CurveViewProvider';

type Drawing = { data: Data[]; layout: Partial<Layout> };

const service = vi.hoisted(() => {
  const drawings: unknown[] = [];
  const answer: { data: object[] } = { data: [] };
  // The client keeps the function that it finds when it is loaded.
  globalThis.fetch = () =>
    Promise.resolve(
      Response.json({
        items: [
          {
            ...answer,
            layout: {},
            x: 'agent_steps',
            revisions: [1, 1],
            n_total: 6,
            n_shown: 6,
            bands: [],
            scale: null,
          },
        ],
      }),
    );
  return { drawings, answer };
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

/** What is drawn of a figure of these runs, in a chart without room for names. */
async function drawn(runs: readonly string[], ...others: object[]): Promise<Drawing> {
  service.answer.data = [...runs.map(line), ...others];
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
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
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
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
