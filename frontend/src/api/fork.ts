import { api, take } from './client';
import type { components } from './generated';
import type { Run } from './runs';

export type ForkRequest = components['schemas']['ForkRequest'];

/** Starts a new run from a checkpoint of another. */
export const forkRun = (parent: string, body: ForkRequest): Promise<Run> =>
  take(api.POST('/api/v1/runs/{run_id}/fork', { params: { path: { run_id: parent } }, body }));
