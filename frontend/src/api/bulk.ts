import { api, take } from './client';
import type { components } from './generated';

export type BulkAction = components['schemas']['BulkRequest']['action'];
export type BulkResult = components['schemas']['BulkOut'];

/** What would become of each run, without doing it. */
export const tryBulk = (action: BulkAction, ids: readonly string[], tags?: string[]): Promise<BulkResult> =>
  sendBulk(action, ids, tags, true);

/** Does the same to many runs. */
export const doBulk = (action: BulkAction, ids: readonly string[], tags?: string[]): Promise<BulkResult> =>
  sendBulk(action, ids, tags, false);

const sendBulk = (
  action: BulkAction,
  ids: readonly string[],
  tags: string[] | undefined,
  dry: boolean,
): Promise<BulkResult> =>
  take(
    api.POST('/api/v1/runs/bulk', {
      body: { action, ids: [...ids], dry_run: dry, ...(tags ? { tags } : {}) },
    }),
  );
