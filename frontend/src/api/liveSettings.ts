import { queryOptions } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type SettingsChange = components['schemas']['SettingsOut'];

/** Every change made to a run's settings while it trained, the newest first. */
export const settingsChangesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'settings'),
    queryFn: async ({ signal }) =>
      (await take(api.GET('/api/v1/runs/{run_id}/settings', { params: { path: { run_id: run } }, signal })))
        .items,
  });

type Values = components['schemas']['SettingsRequest']['config'];

export const changeSettings = (run: string, config: Values) =>
  take(api.PATCH('/api/v1/runs/{run_id}/settings', { params: { path: { run_id: run } }, body: { config } }));
