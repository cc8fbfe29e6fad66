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
import { afterEach, expect, it, vi } from 'vitest';
import type { StudyDraft, StudySource } from '@/api/studies';
import { CustomStudies } from './CustomStudies';
import { SaveAsStudy } from './SaveAsStudy';

const service = vi.hoisted(() => {
  const state = { sent: [] as { path: string; body: unknown }[], draft: {} as unknown };
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/me')) return Response.json({ role: 'operator', name: 'ada' });
    if (request.method === 'GET')
      return Response.json({
        items: [
          {
            id: 'S1',
            name: 'mine',
            scale: null,
            state: 'finished',
            n_runs: 4,
            runs: { finished: 4 },
            created_at: '2026-01-01T00:00:00Z',
          },
        ],
        next_cursor: null,
      });
    state.sent.push({ path: pathname, body: await request.clone().json() });
    if (pathname.endsWith('/draft')) return Response.json(state.draft);
    return Response.json({ id: 'S1' }, { status: 201 });
  };
  return state;
});

afterEach(() => {
  cleanup();
  service.sent.length = 0;
});

const STUDY = {
  name: 'PAAC on CartPole',
  arms: [{ label: 'PAAC (n_e = 4)' }, { label: 'PAAC (n_e = 32)' }],
  environments: ['CartPole-v1'],
  draws: { n: 3, space: {} },
};

const draft = (reused: number, unused: StudyDraft['unused'] = []) => ({
  study: STUDY,
  n_runs: 5,
  unused,
  estimate: {
    n_runs: 6,
    n_reused: reused,
    agent_steps: 10_000,
    time_s: 60,
    minutes_on_two_cores: null,
    memory_bytes: 2 ** 30,
    processes: 2,
    disk_bytes: 2 ** 20,
    warnings: [],
    slots: 2,
    unmeasured: [],
    differs: [],
  },
});

async function show(content: React.ReactNode) {
  const rootRoute = createRootRoute();
  const routes = ['/', '/studies/$studyId'].map((path) =>
    createRoute({ getParentRoute: () => rootRoute, path, component: () => content }),
  );
  const history = createMemoryHistory({ initialEntries: ['/'] });
  const router = createRouter({ routeTree: rootRoute.addChildren(routes), history });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return history;
}

async function openDialog(source: StudySource) {
  const history = await show(<SaveAsStudy source={source} />);
  fireEvent.click(screen.getByRole('button', { name: 'Save as study' }));
  return { history, dialog: within(await screen.findByRole('dialog')) };
}

it('shows what would be started and what exists before it starts the study under its name', async () => {
  service.draft = draft(4, [{ run: 'R5', name: 'old', reason: 'it was forked from another run' }]);
  const { dialog, history } = await openDialog({ runs: ['R1', 'R5'] });
  const name: HTMLInputElement = await dialog.findByRole('textbox', { name: 'Name' });
  expect(name.value).toBe('PAAC on CartPole');
  expect(dialog.getByText('2 arms × 1 environment × 3 seeds')).toBeTruthy();
  expect(dialog.getByRole('list', { name: 'Arms' }).textContent).toContain('PAAC (n_e = 32)');
  expect(dialog.getByLabelText('Cost').textContent).toContain('6 (4 exist)');
  expect(dialog.getByText('1 of the 5 runs is not used')).toBeTruthy();
  expect(dialog.getByText('it was forked from another run')).toBeTruthy();
  fireEvent.change(name, { target: { value: ' ' } });
  expect(dialog.getByText('Enter a name.')).toBeTruthy();
  expect(screen.getByRole('dialog', { name: 'Save as study and start 2 runs' })).toBeTruthy();
  fireEvent.click(dialog.getByRole('button', { name: 'Start 2 runs' }));
  fireEvent.change(name, { target: { value: 'mine' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Start 2 runs' }));
  await vi.waitFor(() => expect(history.location.pathname).toBe('/studies/S1'));
  expect(service.sent).toEqual([
    { path: '/api/v1/studies/draft', body: { runs: ['R1', 'R5'] } },
    { path: '/api/v1/studies', body: { study: STUDY, name: 'mine' } },
  ]);
});

it('saves a study of which every run exists, and sends a sweep by its id', async () => {
  service.draft = draft(6);
  const { dialog } = await openDialog({ sweep: 'W1' });
  expect(await dialog.findByRole('button', { name: 'Save' })).toBeTruthy();
  expect(dialog.queryByText(/not used/)).toBeNull();
  expect(service.sent).toEqual([{ path: '/api/v1/studies/draft', body: { sweep: 'W1' } }]);
});

it('says of which runs no study can be made before its dialog opens', async () => {
  await show(<SaveAsStudy source={{ runs: ['R1'] }} refusal="These runs were trained elsewhere." />);
  const button = screen.getByRole('button', { name: 'Save as study' });
  expect([button.getAttribute('aria-disabled'), button.title]).toEqual([
    'true',
    'These runs were trained elsewhere.',
  ]);
});

it('lists the studies of one’s own by their names', async () => {
  await show(<CustomStudies />);
  const link = await screen.findByRole('link', { name: 'mine' });
  expect(link.getAttribute('href')).toBe('/studies/S1');
  expect(screen.getByText(/4 of 4 runs/)).toBeTruthy();
});
