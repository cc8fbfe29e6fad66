import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Curve } from '@/api/series';
import { ChartMenu } from './ChartMenu';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const curve = (run: string, value: number): Curve => ({
  run,
  metric: 'loss/value',
  source: '',
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

it('ChartMenu downloads the points of each run', async () => {
  const files: Blob[] = [];
  vi.spyOn(URL, 'createObjectURL').mockImplementation((file) => {
    files.push(file as Blob);
    return 'blob:x';
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  render(
    <MantineProvider env="test">
      <ChartMenu
        element={{ current: null }}
        curves={[curve('A', 1), curve('B', 2)]}
        x="agent_steps"
        name="loss"
        log={false}
        onLog={() => undefined}
      />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Options for loss' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Download CSV (downsampled)' }));
  expect(await files[0]?.text()).toBe(
    'run,metric,source,agent_steps,mean,min,max,smoothed\nA,loss/value,,100,1,1,1,\nB,loss/value,,100,2,2,2,\n',
  );
});
