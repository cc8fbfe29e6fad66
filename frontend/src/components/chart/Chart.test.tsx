import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { Data } from 'plotly.js';
import { afterEach, expect, it, vi } from 'vitest';
import { Chart } from './Chart';
import { CurveViewProvider } from './CurveViewProvider';

const library = vi.hoisted(() => {
  let arrive: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  return { arrived, arrive };
});

vi.mock('plotly.js-basic-dist-min', async () => {
  await library.arrived;
  const same = (value: number) => value;
  const axis = { c2p: same, p2c: same, range: [0, 100], _offset: 0, _length: 100 };
  const drawn = { on: () => undefined, _fullLayout: { xaxis: axis, yaxis: axis } };
  const react = (element: HTMLElement) => Promise.resolve(Object.assign(element, drawn));
  return { default: { react, purge: () => undefined } };
});

vi.stubGlobal(
  'ResizeObserver',
  class {
    observe = (): void => undefined;
    disconnect = (): void => undefined;
  },
);

afterEach(cleanup);

it('a chart is a skeleton until the chart library has drawn it', async () => {
  const { container } = render(
    <MantineProvider env="test">
      <CurveViewProvider search={{}} onSearch={() => undefined}>
        <Chart label="Learning curve" data={[]} layout={{}} height={200} view="" />
      </CurveViewProvider>
    </MantineProvider>,
  );
  const skeleton = () => container.querySelector('.mantine-Skeleton-root');
  expect(skeleton()).toBeTruthy();
  expect(screen.queryByRole('img', { name: 'Learning curve' })).toBeNull(); // hidden: it has default axes
  library.arrive();
  await waitFor(() => expect(screen.getByRole('img', { name: 'Learning curve' })).toBeTruthy());
  expect(skeleton()).toBeNull();
});

it('the tooltip names what the axis of the chart counts', async () => {
  library.arrive();
  const data = [{ x: [20], y: [1], name: 'a run', meta: { kind: 'line' } }] as Data[];
  render(
    <MantineProvider env="test">
      <CurveViewProvider search={{}} onSearch={() => undefined}>
        <Chart label="Returns" x="iterations" data={data} layout={{}} height={200} view="" />
      </CurveViewProvider>
    </MantineProvider>,
  );
  const chart = await screen.findByRole('img', { name: 'Returns' });
  fireEvent.mouseMove(chart, { clientX: 20, clientY: 10 });
  expect(screen.getByText('Iterations 20')).toBeTruthy();
});
