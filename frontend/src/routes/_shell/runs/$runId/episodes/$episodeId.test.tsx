import { act, cleanup, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { environmentsQuery } from '@/api/catalogue';
import { createQueryClient } from '@/api/client';
import { openPage } from '@/routes/-openPage';
import { Route } from './$episodeId';

vi.mock('@/features/replay/EpisodePlayer', () => ({ EpisodePlayer: () => <p>player</p> }));
vi.mock('@/features/replay/source', () => ({ sourceOfEpisode: () => ({}) }));
vi.mock('@/features/branches/BranchesPanel', () => ({ default: () => null }));

const service = vi.hoisted(() => {
  const state = { fails: true };
  globalThis.fetch = (input) => {
    const { pathname } = new URL((input as Request).url);
    if (!pathname.endsWith('/environments'))
      return Promise.resolve(Response.json({ name: 'night shift', spec: { config: {} } }));
    if (!state.fails) return new Promise(() => undefined);
    return Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }));
  };
  return state;
});

afterEach(cleanup);

it('ReplayPage keeps the player while a query beside it, which failed, is tried again', async () => {
  const client = createQueryClient();
  await openPage(Route, '/runs/$runId/episodes/$episodeId', '/runs/a/episodes/b', client);
  expect(await screen.findByText('player')).toBeTruthy();
  service.fails = false;
  await act(async () => {
    void client.refetchQueries(environmentsQuery);
    await Promise.resolve();
  });
  expect(client.getQueryState(environmentsQuery.queryKey)?.status).toBe('pending');
  expect(screen.queryByText('player')).toBeTruthy();
});
