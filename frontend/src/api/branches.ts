import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { type Answer, type Figure, wholeFigure } from './tails';

export type Branch = components['schemas']['BranchOut'];
export type BranchRequest = components['schemas']['BranchRequest'];
export type Returns = 'discounted' | 'true';

/** An event reports the end of a job; it may be missed while the browser is offline. */
const REFETCH_MS = 5_000;

export const isWaiting = ({ state }: Branch): boolean => state === 'queued' || state === 'running';

const branchesKey = (run: string, episode: string) => keys.runResource(run, 'branch', episode);

/** The branches of an episode of a run, latest first. */
export const branchesQuery = (run: string, episode: string) =>
  queryOptions({
    queryKey: branchesKey(run, episode),
    queryFn: async ({ signal }) => {
      const query = { episode, limit: 100 };
      return (await unwrap(api.GET('/api/v1/branches', { params: { query }, signal }))).items;
    },
    refetchInterval: ({ state: { data } }) => (data?.some(isWaiting) ? REFETCH_MS : false),
  });

/** The fan of a branch that has been played. */
export const fanQuery = (branch: string, returns: Returns, theme: 'light' | 'dark', width?: number) =>
  queryOptions({
    queryKey: keys.figure('branch', branch, returns, theme, width),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { branch, returns, theme, ...(width !== undefined && { width }) };
      // OpenAPI types plotly's data and layout as plain objects.
      return wholeFigure(
        (await unwrap<unknown>(api.GET('/api/v1/figures/branch', { params: { query }, signal }))) as Answer,
      );
    },
    staleTime: 0, // games that people play from its decision are lines, too
    gcTime: 30_000,
    enabled: width !== undefined,
    structuralSharing: false,
  });

/** The latest runs of an environment: a checkpoint of any of them can play a branch. */
export const runsOfQuery = (environment: string) =>
  queryOptions({
    queryKey: [...keys.allRuns(), 'branch-policies', environment] as const,
    queryFn: async ({ signal }) => {
      const query = { environment: [environment], limit: 200 };
      const { items } = await unwrap(api.GET('/api/v1/runs', { params: { query }, signal }));
      return items.filter(({ origin }) => origin !== 'external');
    },
  });

/** Runs a change of an episode's branches, then refetches them. */
export function useBranchMutation<T, R>(run: string, episode: string, change: (value: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: branchesKey(run, episode) }),
  });
}

export const createBranch = (body: BranchRequest): Promise<Branch> =>
  unwrap(api.POST('/api/v1/branches', { body }));

export const deleteBranch = (id: string): Promise<unknown> =>
  unwrap(api.DELETE('/api/v1/branches/{branch_id}', { params: { path: { branch_id: id } } }));
