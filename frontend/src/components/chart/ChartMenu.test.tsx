import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { type Axes, type Curve, NO_SMOOTHING } from '@/api/series';
import { ChartMenu } from './ChartMenu';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => Promise.resolve(Response.json(answer()));
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const curve = (run: string, value: number | 'Infinity'): Curve => ({
  run,
  metric: 'loss/value',
  source: '',
  step_unit: 'iterations',
  revision: 1,
  n_total: 1,
  n_shown: 1,
  bucket_rows: 1,
  reset: true,
  first_bucket: 0,
  x: [100],
  mean: [value],
  min: [value],
  max: [value],
  last: [value],
  count: [1],
  smoothed: null,
  bucket: null,
});

const AXES: Axes = { x: 'agent_steps', smoothing: NO_SMOOTHING, zoom: null, points: 500 };

function answer(): object {
  return { x: 'agent_steps', smooth: 0, series: [curve('A', 1), curve('B', 'Infinity')], groups: [] };
}

it('ChartMenu downloads the points of each run', async () => {
  const files: Blob[] = [];
  vi.spyOn(URL, 'createObjectURL').mockImplementation((file) => {
    files.push(file as Blob);
    return 'blob:x';
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <ChartMenu
          element={{ current: null }}
          series={{ runs: ['A', 'B'], metrics: ['loss/value'], axes: AXES }}
          name="loss"
          log={false}
          onLog={() => undefined}
        />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Options for loss' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Download CSV (downsampled)' }));
  await vi.waitFor(() => expect(files).toHaveLength(1));
  expect(await files[0]?.text()).toBe(
    'run,metric,source,iterations,mean,min,max,smoothed\nA,loss/value,,100,1,1,1,\nB,loss/value,,100,Infinity,Infinity,Infinity,\n',
  );
});
