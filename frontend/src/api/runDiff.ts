import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type RunDiff = components['schemas']['RunDifferences'];

/** What differs between two runs. */
export const runDiffQuery = (a: string, b: string) =>
  queryOptions({
    queryKey: keys.runDiff(a, b),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/comparisons/diff', { params: { query: { run: [a, b] } }, signal })),
  });
