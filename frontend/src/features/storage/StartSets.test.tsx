import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { isAffected } from '@/api/liveUpdates';
import { startSetsQuery, type StartSet } from '@/api/startSets';
import { protocolLabel } from '@/lib/format';
import { StartSets } from './StartSets';

const service = vi.hoisted(() => {
  const state = {
    requests: [] as { request: string; body: unknown }[],
    answers: {} as Record<string, { status: number; body: unknown }>,
  };
  globalThis.fetch = async (input) => {
    const { method, url } = input as Request;
    const request = `${method} ${url.replace(/^.*\/api\/v1/, '').replace(/\?.*$/, '')}`;
    const sent = await (input as Request).text();
    state.requests.push({ request, body: sent ? JSON.parse(sent) : null });
    const { status, body } = state.answers[request] ?? { status: 500, body: {} };
    return status === 204 ? new Response(null, { status }) : Response.json(body, { status });
  };
  return state;
});

const wall: StartSet = {
  id: '01JD3QZ6W9K0Y5T8H2V4B7N1XC',
  name: 'wall',
  version: 2,
  created_at: '2026-01-01T00:00:00Z',
  created_by: null,
  environment: 'ALE/Breakout-v5',
  source: 'agent',
  origin: '3 episodes of run PAAC',
  n_points: 100,
  n_games: 3,
  n_people: 0,
  is_small: true,
  caption: '100 starts from 3 games, 12,345 frames; small: fewer than 5 games',
  n_frames: 12_345,
  mode: null,
  difficulty: null,
  rom_md5: null,
  ale_py: '0.12.1',
  sha256: '0'.repeat(64),
  state: 'ready',
  error: null,
  protocols: ['agent_starts:wall@2', 'agent_starts_greedy:wall@2'],
};
const bad: StartSet = { ...wall, id: '01JD3QZ6W9K0Y5T8H2V4B7N1XD', name: 'bad', version: 1, n_frames: null };
const run = {
  id: '01JD3QZ6W9K0Y5T8H2V4B7N1XE',
  name: 'PAAC',
  environment: 'ALE/Breakout-v5',
  origin: 'callboard',
};

beforeEach(() => {
  service.requests.length = 0;
  service.answers = {
    'GET /start-sets': {
      status: 200,
      body: { items: [wall, { ...bad, state: 'failed', error: 'game 0: ram differs' }], next_cursor: null },
    },
    'GET /start-sets/sources': { status: 200, body: { items: [] } },
    'GET /runs': {
      status: 200,
      body: { items: [{ ...run, environment: 'CartPole-v1' }, run], next_cursor: null },
    },
  };
});
afterEach(cleanup);

function show(role = 'operator'): void {
  const client = new QueryClient({
    defaultOptions: { queries: { retry: false, staleTime: Infinity }, mutations: { retry: false } },
  });
  client.setQueryData(keys.me(), { role });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <StartSets />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

it('lists sets with game, points, games, frames and the reason of a failure', async () => {
  show();
  const row = (await screen.findByText('wall v2')).closest('tr');
  expect(row?.textContent).toContain('Breakout');
  expect(row?.textContent).toContain('12,345');
  expect(row?.textContent).toContain('a stored agent');
  expect(row?.textContent).toContain('3 (small)');
  expect(screen.getByText('failed: game 0: ram differs')).toBeTruthy();
  expect(screen.getByRole('link', { name: 'Export wall v2' }).getAttribute('href')).toBe(
    `/api/v1/start-sets/${wall.id}/export`,
  );
  expect(screen.queryByRole('link', { name: 'Export bad v1' })).toBeNull();
});

it('creates a set of an Atari run, and shows at the field what is refused', async () => {
  show();
  service.answers['POST /start-sets'] = {
    status: 422,
    body: { title: 'x', status: 422, errors: [{ field: 'points', message: 'the games have 3 states' }] },
  };
  fireEvent.click(await screen.findByRole('button', { name: 'Create a start set' }));
  fireEvent.change(await screen.findByLabelText('Name'), { target: { value: 'wall' } });
  fireEvent.click(screen.getByRole('button', { name: 'Create' }));
  expect((await screen.findByRole('alert')).textContent).toBe('the games have 3 states');
  const sent = service.requests.find(({ request }) => request === 'POST /start-sets');
  expect(sent?.body).toEqual({ name: 'wall', run: run.id, points: 100, seed: 0 });
});

it('creates a set of games that people have played, and counts games, people and frames', async () => {
  service.answers['GET /start-sets/sources'] = {
    status: 200,
    body: { items: [{ environment: 'ALE/Breakout-v5', players: 'people', n_recordings: 2 }] },
  };
  const ofPeople = { ...wall, source: 'human', n_people: 2, n_games: 6, is_small: false };
  service.answers['GET /start-sets'] = { status: 200, body: { items: [ofPeople], next_cursor: null } };
  show();
  const row = (await screen.findByText('wall v2')).closest('tr');
  expect(row?.textContent).toContain('2 people');
  expect(row?.textContent).not.toContain('small');
  service.answers['POST /start-sets'] = { status: 201, body: ofPeople };
  fireEvent.click(screen.getByRole('button', { name: 'Create a start set' }));
  expect(
    (await screen.findByRole('option', { name: 'Breakout (2 recordings of people)' })).parentElement,
  ).toHaveProperty('label', 'Games that people have played');
  fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'wall' } });
  fireEvent.click(screen.getByRole('button', { name: 'Create' }));
  await waitFor(() => {
    const sent = service.requests.find(({ request }) => request === 'POST /start-sets');
    expect(sent?.body).toEqual({
      name: 'wall',
      environment: 'ALE/Breakout-v5',
      players: 'people',
      points: 100,
      seed: 0,
    });
  });
});

it('creates a set of games that scripts have played, apart from those of people', async () => {
  service.answers['GET /start-sets/sources'] = {
    status: 200,
    body: {
      items: [
        { environment: 'ALE/Pong-v5', players: 'scripts', n_recordings: 1 },
        { environment: 'ALE/Breakout-v5', players: 'scripts', n_recordings: 430 },
      ],
    },
  };
  service.answers['POST /start-sets'] = {
    status: 422,
    body: { title: 'x', status: 422, errors: [{ field: 'environment', message: 'its session is open' }] },
  };
  show();
  fireEvent.click(await screen.findByRole('button', { name: 'Create a start set' }));
  const option = await screen.findByRole('option', {
    name: 'Breakout (the latest 200 of 430 recordings of scripts)',
  });
  expect(option.parentElement).toHaveProperty('label', 'Games that scripts have played');
  expect(screen.queryByRole('group', { name: 'Games that people have played' })).toBeNull();
  fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'wall' } });
  fireEvent.change(screen.getByLabelText('Games'), { target: { value: option.getAttribute('value') } });
  fireEvent.click(screen.getByRole('button', { name: 'Create' }));
  expect((await screen.findByRole('alert')).textContent).toBe('its session is open');
  const sent = service.requests.find(({ request }) => request === 'POST /start-sets');
  expect(sent?.body).toEqual({
    name: 'wall',
    environment: 'ALE/Breakout-v5',
    players: 'scripts',
    points: 100,
    seed: 0,
  });
});

it('deletes a set after a confirmation', async () => {
  show();
  service.answers[`DELETE /start-sets/${wall.id}`] = { status: 204, body: null };
  fireEvent.click(await screen.findByRole('button', { name: 'Delete wall v2' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Delete' }));
  await waitFor(() =>
    expect(service.requests.some(({ request }) => request === `DELETE /start-sets/${wall.id}`)).toBe(true),
  );
});

it('lets viewers read only', async () => {
  show('viewer');
  for (const name of ['Create a start set', 'Import a start set', 'Delete wall v2'])
    expect((await screen.findByRole('button', { name })).getAttribute('aria-disabled')).toBe('true');
});

it('refetches when a verification has changed', () => {
  const [key = []] = startSetsQuery.meta?.dependsOn?.(undefined) ?? [];
  const job = { kind: 'job', id: 'a', state: 'done', parents: {} };
  expect(isAffected(key, { ...job, changed: ['state', 'start_set', 'result'] })).toBe(true);
  expect(isAffected(key, { ...job, parents: { run: 'b' }, changed: ['state', 'video'] })).toBe(false);
});

it('names protocols by set and version', () => {
  expect(protocolLabel('agent_starts:wall@2')).toBe('agent starts, wall v2');
  expect(protocolLabel('agent_starts_greedy:wall@2')).toBe('agent starts, greedy, wall v2');
});
