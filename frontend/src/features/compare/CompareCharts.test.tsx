import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { Spread } from '@/api/series';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { CompareCharts } from './CompareCharts';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUNS = ['00000000000000000000000001', '00000000000000000000000002'];
const MEDIAN: Spread = { centre: 'median', interval: 'ci95' };

function show(more: { metrics?: readonly string[]; grouped?: boolean; spread?: Spread } = {}) {
  const reported = { onMetrics: vi.fn(), onGrouped: vi.fn(), onSpread: vi.fn(), onSearch: vi.fn() };
  const { onSearch, ...charts } = reported;
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const recorded = ['loss/entropy', 'loss/value', 'system/cpu_percent'];
  client.setQueryData(
    keys.metrics(RUNS),
    recorded.map((metric) => ({ metric, title: metric, n_runs: 2 })),
  );
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <CurveViewProvider search={{}} onSearch={onSearch}>
          <CompareCharts
            runs={RUNS}
            metrics={[]}
            grouped={false}
            spread={MEDIAN}
            sizes={new Map()}
            onSizes={() => undefined}
            names={new Map()}
            hidden={new Set()}
            {...charts}
            {...more}
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return reported;
}

const search = () => screen.getByRole<HTMLInputElement>('combobox', { name: 'Add a metric' });
const choose = (name: string, value: string) =>
  fireEvent.change(screen.getByRole('combobox', { name }), { target: { value } });

it('Enter adds the first metric that matches', () => {
  const { onMetrics } = show({ metrics: ['loss/value'] });
  fireEvent.change(search(), { target: { value: 'LOSS' } });
  fireEvent.keyDown(search(), { key: 'Enter', code: 'Enter' });
  // `loss/value` has its panel already.
  expect(onMetrics).toHaveBeenCalledExactlyOnceWith(['loss/value', 'loss/entropy']);
  expect(search().value).toBe('');
});

it('a metric that no run has is reported, and not added', () => {
  const { onMetrics } = show();
  fireEvent.change(search(), { target: { value: 'entropie' } });
  fireEvent.keyDown(search(), { key: 'Enter', code: 'Enter' });
  expect(screen.getByText('None of these runs has such a metric.')).toBeTruthy();
  expect(onMetrics).not.toHaveBeenCalled();
});

it('runs are grouped over seeds, with a line and a band', () => {
  const { onGrouped } = show();
  expect(screen.queryByRole('combobox', { name: 'Band' })).toBeNull();
  fireEvent.click(screen.getByRole('radio', { name: 'Over seeds' }));
  expect(onGrouped).toHaveBeenCalledExactlyOnceWith(true);
  cleanup();
  const { onSpread } = show({ grouped: true });
  choose('Line', 'iqm');
  expect(onSpread).toHaveBeenLastCalledWith({ centre: 'iqm', interval: 'ci95' });
  choose('Band', 'min_max');
  expect(onSpread).toHaveBeenLastCalledWith({ centre: 'median', interval: 'min_max' });
});

it('a median has no standard error', () => {
  const { onSpread } = show({ grouped: true, spread: { centre: 'mean', interval: 'se' } });
  choose('Line', 'median');
  expect(onSpread).toHaveBeenLastCalledWith(MEDIAN);
  cleanup();
  show({ grouped: true });
  expect(screen.getByRole<HTMLOptionElement>('option', { name: 'SE' }).disabled).toBe(true);
});

it('the x axis and the smoothing of all panels are chosen once', () => {
  const { onSearch } = show();
  choose('X axis', 'clock_time_s');
  expect(onSearch).toHaveBeenLastCalledWith(expect.objectContaining({ x: 'clock_time_s' }));
  choose('Smoothing', 'window');
  expect(onSearch).toHaveBeenLastCalledWith(expect.objectContaining({ smoothing: 'window' }));
});
