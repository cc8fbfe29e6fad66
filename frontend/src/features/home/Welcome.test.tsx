import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { createRuns, type Run } from '@/api/runs';
import { Welcome } from './Welcome';

// There is no service to start runs.
vi.mock('@/api/runs', async (original) => ({ ...(await original<object>()), createRuns: vi.fn() }));

const EPISODES = [320, 15_120, 37_200, 137_280].map((agent_steps, index) => ({
  ...{ id: `episode-${index}`, agent_steps, episode_return: 9 * index },
}));

const preset = (id: string) => ({
  id,
  config: { n_w: 2 },
  environment_config: { crop: id === 'compact-cropped' },
  stop: { agent_steps: 3_000_000 },
});
const PAAC = { id: 'paac', presets: [preset('full-frame-centred'), preset('compact-cropped')] };

const page = (items: object[]) => ({ pages: [{ items, next_cursor: null }], pageParams: [null] });

async function show(role = 'operator', algorithms: object[] = [PAAC], demo: object[] = []) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role });
  client.setQueryData(keys.algorithms(), algorithms);
  client.setQueryData(keys.runs({ filter: 'demo:true', limit: 1 }), page(demo));
  client.setQueryData(keys.episodes('demo', 'agent_steps', undefined), page(EPISODES));
  const rootRoute = createRootRoute({ component: Welcome });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  render(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByRole('heading', { level: 1 });
  return router;
}

beforeEach(() => {
  vi.mocked(createRuns)
    .mockReset()
    .mockResolvedValue([{ id: 'new' } as Run]);
});
afterEach(cleanup);

it.each([
  ['CartPole', 'CartPole-v1', {}, { agent_steps: 1_000_000 }],
  ['Pong', 'ALE/Pong-v5', { crop: false }, { agent_steps: 3_000_000 }],
  ['Breakout', 'ALE/Breakout-v5', { crop: false }, { agent_steps: 3_000_000 }],
])('starts the offered run of %s with one click and opens it', async (title, environment, crop, stop) => {
  const router = await show();
  fireEvent.click(screen.getByRole('button', { name: `Train on ${title}` }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/runs/new'));
  const sent = vi.mocked(createRuns).mock.calls.map(([fields]) => fields);
  expect(sent).toEqual([
    {
      algorithm: 'paac',
      environment,
      config: 'crop' in crop ? { n_w: 2 } : {},
      environment_config: crop,
      stop,
    },
  ]);
});

it('shows why a run could not be started', async () => {
  vi.mocked(createRuns).mockRejectedValue(new Error('full'));
  await show();
  fireEvent.click(screen.getByRole('button', { name: 'Train on Pong' }));
  expect((await screen.findByRole('alert')).textContent).toContain('full');
});

it('offers a viewer no run, and names the role that is needed', async () => {
  await show('viewer');
  const button = screen.getByRole('button', { name: 'Train on Pong' });
  fireEvent.click(button);
  expect(createRuns).not.toHaveBeenCalled();
  expect(screen.queryByRole('link', { name: 'Choose all settings' })).toBeNull();
});

it('does not start a run whose preset this version lacks', async () => {
  await show('operator', [{ id: 'paac', presets: [] }]);
  fireEvent.click(screen.getByRole('button', { name: 'Train on Pong' }));
  expect(createRuns).not.toHaveBeenCalled();
});

it('copies the three lines of a script', async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal('navigator', { clipboard: { writeText } });
  await show();
  fireEvent.click(screen.getByRole('button', { name: 'Copy python code' }));
  expect(writeText).toHaveBeenCalledWith(
    expect.stringMatching(/^import callboard\nrun = callboard\.init\(.*\nrun\.log\(.*$/),
  );
  vi.unstubAllGlobals();
});

it('opens the demo run and each of its replays', async () => {
  await show('viewer', [PAAC], [{ id: 'demo', name: 'Demo' }]);
  expect(screen.getByRole('link', { name: 'Open the demo run' }).getAttribute('href')).toBe('/runs/demo');
  const moments = screen.getAllByRole('link', { name: /^after/ });
  expect(moments.map((link) => link.getAttribute('href'))).toEqual(
    EPISODES.map(({ id }) => `/runs/demo/episodes/${id}`),
  );
});

it('shows no demo run where it has been deleted', async () => {
  await show();
  expect(screen.queryByRole('link', { name: 'Open the demo run' })).toBeNull();
});

it('pauses its videos', async () => {
  await show('operator', [PAAC], [{ id: 'demo', name: 'Demo' }]);
  fireEvent.click(screen.getByRole('button', { name: 'Pause the videos' }));
  expect(screen.getByRole('button', { name: 'Play the videos' })).toBeTruthy();
});

it('promises times of idle CPU cores only', async () => {
  await show();
  expect(screen.getByRole('region', { name: 'CartPole' }).textContent).toContain('a minute or two');
  expect(screen.getByText(/^Times on two idle CPU cores: a busy machine takes longer\./)).toBeTruthy();
});
