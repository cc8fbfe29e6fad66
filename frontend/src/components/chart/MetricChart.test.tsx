import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { CurveViewProvider } from './CurveViewProvider';
import { MetricChart } from './MetricChart';

/** The figure that the service answers; without it, nothing yet. */
const service = vi.hoisted(() => {
  const state = { figure: undefined as object | undefined };
  globalThis.fetch = () =>
    state.figure ? Promise.resolve(Response.json({ items: [state.figure] })) : new Promise(() => undefined);
  return state;
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('a chart is mounted, and asks for data, only in or near the viewport', () => {
  let scroll: (isIntersecting: boolean) => void = () => undefined;
  const margins: unknown[] = [];
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      constructor(callback: (entries: object[]) => void, options?: { rootMargin?: string }) {
        margins.push(options?.rootMargin);
        scroll = (isIntersecting) => act(() => callback([{ isIntersecting }]));
      }
      observe = (): void => undefined;
      disconnect = (): void => undefined;
    },
  );
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const asked = () => client.getQueryCache().getAll().length;
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <MetricChart
            runs={['R']}
            title="loss/value"
            label="loss/value of a run"
            fileName="f"
            id="loss/value"
            metrics={['loss/value']}
            figure={{ metric: 'loss/value' }}
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(margins).toEqual(['300px']);
  expect(screen.queryByText('loss/value')).toBeNull();
  expect(asked()).toBe(0);
  scroll(true);
  expect(screen.getByText('loss/value')).toBeTruthy();
  expect(asked()).toBeGreaterThan(0);
  expect(screen.getByRole('status', { name: 'Loading loss/value…' })).toBeTruthy();
  scroll(false);
  expect(screen.queryByText('loss/value')).toBeNull();
});

it('a metric with a single point is a number, not a chart', async () => {
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      constructor(private readonly callback: (entries: object[]) => void) {}
      observe = (): void => this.callback([{ isIntersecting: true }]);
      disconnect = (): void => undefined;
    },
  );
  service.figure = {
    data: [{ x: [5000], y: [0.25], meta: { kind: 'line' } }],
    layout: {},
    ...{ x: 'agent_steps', revisions: [1], n_total: 1, n_shown: 1, bands: [], scales: [] },
  };
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <MetricChart
            runs={['R']}
            title="eval/score"
            label="eval/score of a run"
            fileName="f"
            id="eval/score"
            metrics={['eval/score']}
            figure={{ metric: 'eval/score' }}
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(await screen.findByText('0.25')).toBeTruthy();
  expect(screen.getByText(/5,000/).textContent).toBe('Agent steps 5,000');
  expect(screen.queryByRole('img')).toBeNull();
});
