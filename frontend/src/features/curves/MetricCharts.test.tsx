import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { MetricCharts } from './MetricCharts';

const service = vi.hoisted(() => {
  const state = { fails: false };
  globalThis.fetch = (input) =>
    state.fails && (input as Request).url.includes('/api/v1/runs/')
      ? Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }))
      : new Promise(() => undefined);
  return state;
});

/** Whether every chart is in the viewport, or none. */
let inView = true;

class Viewport {
  constructor(private readonly callback: (entries: object[]) => void) {}
  observe = (): void => this.callback([{ isIntersecting: inView }]);
  disconnect = (): void => undefined;
}

beforeEach(() => {
  localStorage.clear();
  inView = true;
  service.fails = false;
  vi.stubGlobal('IntersectionObserver', Viewport);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const RUN = { id: '00000000000000000000000001', name: 'one', state: 'running' } as unknown as Run;

function show(metrics = ['loss/entropy', 'loss/value', 'optim/grad_norm', 'rollout/episode_return']) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.seriesNames(RUN.id), {
    items: metrics.map((metric) => ({ metric, source: '' })),
  });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <MetricCharts run={RUN} filter={(metric) => !metric.startsWith('rollout/')} />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return client;
}

const METRICS = ['loss/entropy', 'loss/value', 'optim/grad_norm', 'rollout/episode_return'];
const charts = (): string[] => METRICS.filter((metric) => screen.queryAllByText(metric).length > 0);
const fold = (section: string): HTMLElement =>
  screen.getByRole('button', { name: new RegExp(`^${section} `) });

describe('MetricCharts', () => {
  it('leaves smoothing and x axis to the learning curve above it', () => {
    show();
    expect(screen.queryByLabelText('X axis')).toBeNull();
    expect(screen.queryByLabelText('Smoothing')).toBeNull();
  });

  it('shows the metrics of its filter in sections', () => {
    show();
    expect(charts()).toEqual(['loss/entropy', 'loss/value', 'optim/grad_norm']);
    expect(screen.getAllByRole('region').map((region) => region.getAttribute('aria-label'))).toEqual(
      expect.arrayContaining(['Metrics of loss', 'Metrics of optim']),
    );
  });

  it('shows what its search matches, and that nothing does', () => {
    show();
    const search = screen.getByRole('searchbox', { name: 'Find metrics' });
    fireEvent.change(search, { target: { value: 'value' } });
    expect(charts()).toEqual(['loss/value']);
    fireEvent.change(search, { target: { value: 'nothing' } });
    expect(screen.getByText('No matching metrics.')).toBeDefined();
  });

  it('folds what its search matches, and leaves other sections as they are', () => {
    show();
    fireEvent.click(fold('optim'));
    const search = screen.getByRole('searchbox', { name: 'Find metrics' });
    fireEvent.change(search, { target: { value: 'loss' } });
    fireEvent.click(screen.getByRole('button', { name: 'Collapse all' }));
    fireEvent.change(search, { target: { value: '' } });
    expect(charts()).toEqual([]);
    fireEvent.change(search, { target: { value: 'loss' } });
    fireEvent.click(screen.getByRole('button', { name: 'Expand all' }));
    fireEvent.change(search, { target: { value: '' } });
    expect(charts()).toEqual(['loss/entropy', 'loss/value']);
  });

  it('keeps a folded section folded after a reload, until it is expanded', () => {
    show();
    fireEvent.click(fold('loss'));
    expect(charts()).toEqual(['optim/grad_norm']);
    cleanup();
    show();
    expect(fold('loss').getAttribute('aria-expanded')).toBe('false');
    expect(charts()).toEqual(['optim/grad_norm']);
    fireEvent.click(fold('loss'));
    expect(charts()).toHaveLength(3);
  });

  it('collapses and expands all sections', () => {
    show();
    fireEvent.click(screen.getByRole('button', { name: 'Collapse all' }));
    expect(charts()).toEqual([]);
    fireEvent.click(screen.getByRole('button', { name: 'Expand all' }));
    expect(charts()).toHaveLength(3);
  });

  it('mounts only charts in view', () => {
    inView = false;
    show();
    expect(charts()).toEqual([]);
    expect(fold('loss')).toBeDefined();
  });

  it.each([
    ['its charts', METRICS, () => expect(charts()).toHaveLength(3)],
    ['that there are none', [], () => expect(screen.getByText(/^No metrics yet/)).toBeDefined()],
  ])('keeps %s beside the error of a failed refetch', async (_, metrics, expectShown) => {
    const client = show(metrics);
    service.fails = true;
    await act(() => client.refetchQueries({ queryKey: keys.seriesNames(RUN.id) }));
    expect((await screen.findByRole('alert')).textContent).toContain('Internal server error');
    expectShown();
  });

  it('shows that a live run has no metrics yet', () => {
    show(['rollout/episode_return']);
    expect(screen.getByText(/^No metrics yet/)).toBeDefined();
  });
});
