import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { useState, type ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { DEFAULT_SORT } from './configurations';
import { ConfigurationTable } from './ConfigurationTable';
import { SettingScatter } from './SettingScatter';
import { testConfiguration, testSweep } from './testSweep';

const requests = vi.hoisted(() => {
  const sent: URL[] = [];
  globalThis.fetch = (request) => {
    sent.push(new URL((request as Request).url));
    return Promise.resolve(Response.json({ data: [], layout: { xaxis: { type: 'log' } } }));
  };
  return sent;
});

/** Replaces the drawing library, which needs a layout of the page. */
const drawing = vi.hoisted(() => ({ react: vi.fn(() => Promise.resolve()), purge: () => undefined }));
vi.mock('plotly.js-basic-dist-min', () => ({ default: drawing }));

afterEach(cleanup);

const TITLES = new Map([['config.learning_rate', 'Learning rate']]);
const REASON = 'worse than another after 3 seeds, with 95% confidence';
const best = testConfiguration(1, 0.01, [200, 210, 220]);
const sweep = testSweep(
  [
    testConfiguration(0, 0.001, [90, 100, 110]),
    best,
    testConfiguration(2, 0.1, [9, 10, 11], { eliminated: REASON }),
  ],
  { best: { number: 1, settings: best.settings, iqm: best.iqm } },
);

async function show(content: ReactNode): Promise<void> {
  const rootRoute = createRootRoute({
    component: () => (
      <MantineProvider>
        <QueryClientProvider client={new QueryClient()}>{content}</QueryClientProvider>
      </MantineProvider>
    ),
  });
  const runRoute = createRoute({ getParentRoute: () => rootRoute, path: '/runs/$runId' });
  const router = createRouter({
    routeTree: rootRoute.addChildren([runRoute]),
    history: createMemoryHistory(),
  });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

function Table({ onSort }: { onSort?: (sort: string) => void }) {
  const [sort, setSort] = useState(DEFAULT_SORT);
  const change = (to: string): void => {
    setSort(to);
    onSort?.(to);
  };
  return <ConfigurationTable sweep={sweep} sort={sort} onSort={change} titles={TITLES} />;
}

const numbers = (): (string | null | undefined)[] =>
  screen
    .getAllByRole('row')
    .slice(1)
    .map((row) => within(row).getAllByRole('cell')[0]?.firstChild?.textContent);

it('ConfigurationTable sorts by the pressed header, and reports the sort', async () => {
  const onSort = vi.fn();
  await show(<Table onSort={onSort} />);
  expect(numbers()).toEqual(['1', '0', '2']);
  fireEvent.click(screen.getByRole('button', { name: 'Learning rate' }));
  expect(onSort).toHaveBeenLastCalledWith('config.learning_rate');
  expect(numbers()).toEqual(['0', '1', '2']);
  const header = screen.getByRole('columnheader', { name: 'Learning rate' });
  expect(header.getAttribute('aria-sort')).toBe('ascending');
  fireEvent.click(within(header).getByRole('button'));
  expect(onSort).toHaveBeenLastCalledWith('-config.learning_rate');
  expect(numbers()).toEqual(['2', '1', '0']);
});

it('ConfigurationTable marks the row with the highest score, and shows why another is eliminated', async () => {
  await show(<Table />);
  const [, first, second, last] = screen.getAllByRole('row');
  expect(first?.dataset.standing).toBe('best');
  expect(first?.textContent).toContain('highest');
  expect(second?.textContent).toContain('racing');
  expect(last?.dataset.standing).toBe('eliminated');
  expect(last?.textContent).toContain(`eliminated: ${REASON}`);
  expect(screen.getByTitle(REASON)).toBeTruthy();
});

it('ConfigurationTable links the score of each seed to its run, on a common scale', async () => {
  await show(<Table />);
  const at = (name: string): string => screen.getByRole('link', { name }).style.left;
  expect(screen.getAllByRole('link')).toHaveLength(9);
  const link = screen.getByRole('link', { name: 'lr 0.01, seed 2: score 220.0' });
  expect(link.getAttribute('href')).toBe('/runs/R12');
  expect(link.style.left).toBe('100.00%');
  expect(at('lr 0.1, seed 0: score 9.00')).toBe('0.00%');
});

it('SettingScatter requests the figure of a setting, whose scale can be changed', async () => {
  const onLog = vi.fn();
  await show(
    <SettingScatter
      sweep={sweep}
      titles={TITLES}
      setting={undefined}
      onSetting={() => undefined}
      log={undefined}
      onLog={onLog}
    />,
  );
  screen.getByRole('img', {
    name: 'Score against Learning rate: 9 finished runs of 3 configurations',
  });
  expect(screen.getByRole('option', { name: 'Learning rate' })).toHaveProperty(
    'value',
    'config.learning_rate',
  );
  await vi.waitFor(() => expect(drawing.react).toHaveBeenCalled());
  expect(requests.map(({ pathname, search }) => pathname + search)).toEqual([
    `/api/v1/sweeps/${sweep.id}/scatter?setting=config.learning_rate&theme=light`,
  ]);
  const log = screen.getByRole('switch', { name: 'Log scale' });
  expect(log).toHaveProperty('checked', true);
  fireEvent.click(log);
  expect(onLog).toHaveBeenCalledWith(false);
});
