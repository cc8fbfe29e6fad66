import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { StudyDetail } from '@/api/studies';
import { StudyFigure } from './StudyFigure';

const served = vi.hoisted(() => ({ answer: {} }));

vi.mock('@/api/studies', async (original) => ({
  ...(await original<object>()),
  studyFigureQuery: () => ({ queryKey: ['figure'], queryFn: () => served.answer }),
}));
vi.mock('plotly.js-basic-dist-min', () => ({
  default: { react: () => Promise.resolve(), purge: () => undefined },
}));
vi.stubGlobal(
  'ResizeObserver',
  class {
    observe = (): void => undefined;
    disconnect = (): void => undefined;
  },
);

afterEach(cleanup);

const STUDY = {
  id: 'S',
  state: 'running',
  runs: { running: 1, waiting: 3 },
  spec: { figures: [{ id: 'f', kind: 'curves' }], environments: ['CartPole-v1'] },
} as unknown as StudyDetail;
const FIGURE = {
  id: 'f',
  title: 'Score',
  kind: 'curves',
  table: null,
  caption: '0 of 4 runs are in',
  finding: '',
};

const show = () =>
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <StudyFigure study={STUDY} figure="f" title="Score" item={undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );

it('curves of runs that train are drawn before the first of them has finished', async () => {
  served.answer = { ...FIGURE, n_in: 0, figure: { data: [{ x: [1], y: [2] }], layout: {} } };
  show();
  expect(await screen.findByRole('img', { name: 'Score: 0 of 4 runs are in' })).toBeTruthy();
  expect(screen.queryByText(/No run has a score yet/)).toBeNull();
});

it('a figure without a run says so', async () => {
  served.answer = { ...FIGURE, n_in: 0, figure: { data: [], layout: {} } };
  show();
  expect(await screen.findByText(/No run has a score yet/)).toBeTruthy();
  expect(screen.queryByRole('img', { name: /Score/ })).toBeNull();
});

it('a table is exported as LaTeX, CSV and a caption', async () => {
  const table = {
    columns: [
      { title: 'Environment', how: '', source: 'name', unit: '' },
      { title: 'PAAC', how: 'mean', source: 'ours', unit: 'score' },
    ],
    rows: [{ label: 'CartPole', cells: [{ value: 1, low: null, high: null, n: 1, planned: 1 }] }],
    foot: [],
  };
  served.answer = { ...FIGURE, n_in: 1, figure: null, table };
  show();
  fireEvent.click(await screen.findByRole('button', { name: 'Export table…' }));
  const items = await screen.findAllByRole('menuitem');
  expect(items.map((item) => [item.textContent, item.getAttribute('href')?.split('/api')[1]])).toEqual([
    ['LaTeX, for booktabs', '/v1/studies/S/figures/f?format=latex'],
    ['CSV', '/v1/studies/S/figures/f?format=csv'],
    ['Caption', '/v1/studies/S/figures/f?format=caption'],
  ]);
});
