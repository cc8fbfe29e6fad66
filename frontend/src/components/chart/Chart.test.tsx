import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
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
  const react = (element: HTMLElement) => Promise.resolve(Object.assign(element, { on: () => undefined }));
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
