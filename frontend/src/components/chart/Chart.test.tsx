import { MantineProvider } from '@mantine/core';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { Data } from 'plotly.js';
import { afterEach, expect, it, vi } from 'vitest';
import { Chart } from './Chart';
import { CurveViewProvider } from './CurveViewProvider';

const library = vi.hoisted(() => {
  let arrive: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const [events, drawings] = [[] as string[], [] as unknown[]];
  /** `failures`: drawings that are to fail; `watched`: elements whose size is. */
  const afterPlot = (): void => undefined;
  return {
    arrived,
    arrive,
    failures: 0,
    events,
    drawings,
    watched: new Set<Element>(),
    pxPerUnit: 1,
    afterPlot,
  };
});

vi.mock('plotly.js-basic-dist-min', async () => {
  await library.arrived;
  const same = (value: number) => value;
  const axis = {
    c2p: (value: number) => value * library.pxPerUnit,
    p2c: same,
    range: [0, 100],
    _offset: 0,
    _length: 100,
  };
  const on = (event: string, listener: () => void) => {
    library.events.push(event);
    if (event === 'plotly_afterplot') library.afterPlot = listener;
  };
  const drawn = { on, _fullLayout: { xaxis: axis, yaxis: axis } };
  const react = (element: HTMLElement, data: Data[]) => {
    library.drawings.push(data);
    return library.failures-- > 0
      ? Promise.reject(new Error('cannot draw'))
      : Promise.resolve(Object.assign(element, drawn));
  };
  return { default: { react, purge: () => undefined } };
});

vi.stubGlobal(
  'ResizeObserver',
  class {
    observe = (element: Element): void => void library.watched.add(element);
    disconnect = (): void => library.watched.clear();
  },
);

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

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

it('the crosshair stays at its value when the chart is drawn with another range', async () => {
  library.arrive();
  const data = [{ x: [20], y: [1], name: 'a run', meta: { kind: 'line' } }] as Data[];
  const { container } = render(
    <MantineProvider env="test">
      <CurveViewProvider search={{}} onSearch={() => undefined}>
        <Chart label="Returns" data={data} layout={{}} height={200} view="" />
      </CurveViewProvider>
    </MantineProvider>,
  );
  const chart = await screen.findByRole('img', { name: 'Returns' });
  fireEvent.mouseMove(chart, { clientX: 20, clientY: 10 });
  const lines = (): string[] =>
    [...container.querySelectorAll<HTMLElement>('[style*="left"]')].map(({ style }) => style.left);
  expect(lines()).toContain('20px');
  library.pxPerUnit = 0.5;
  act(() => library.afterPlot());
  library.pxPerUnit = 1;
  expect(lines()).toContain('10px');
});

it('a chart that could not be drawn is drawn on request, with its events and its size', async () => {
  library.arrive();
  library.failures = 1;
  render(
    <MantineProvider env="test">
      <CurveViewProvider search={{}} onSearch={() => undefined}>
        <Chart label="Losses" data={[]} layout={{}} height={200} view="" />
      </CurveViewProvider>
    </MantineProvider>,
  );
  const retry = await screen.findByRole('button', { name: 'Try again' });
  library.events.length = 0;
  fireEvent.click(retry);
  const chart = await screen.findByRole('img', { name: 'Losses' });
  expect(library.events).toEqual(['plotly_relayout', 'plotly_afterplot']);
  expect([...library.watched]).toEqual([chart]);
});

it('a chart is drawn at most once a second, also after the clock was set back', async () => {
  library.arrive();
  vi.useFakeTimers();
  const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
  const chart = (...data: Data[]) => (
    <MantineProvider env="test">
      <CurveViewProvider search={{}} onSearch={() => undefined}>
        <Chart label="Rates" data={data} layout={{}} height={200} view="" />
      </CurveViewProvider>
    </MantineProvider>
  );
  await pass(1);
  const { rerender } = render(chart());
  await pass(10_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  library.drawings.length = 0;
  for (let n = 0; n < 10; n += 1) {
    rerender(chart({ name: `${n}` }));
    await pass(10);
  }
  expect(library.drawings).toEqual([[{ name: '0' }]]);
  await pass(1000);
  expect(library.drawings.slice(1)).toEqual([[{ name: '9' }]]);
});
