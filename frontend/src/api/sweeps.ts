import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { type Answer, wholeFigure } from './tails';

export type Sweep = components['schemas']['SweepOut'];
export type SweepDetail = components['schemas']['SweepDetail'];
export type Configuration = components['schemas']['ConfigurationOut'];
export type SweepExtension = components['schemas']['SweepExtension'];
export type SweepChanges = components['schemas']['ExperimentChanges'];
type SweepSpec = components['schemas']['SweepSpec'];
type Dimension = components['schemas']['Dimension'];

/** The body that starts a sweep; fields that are left out have the service's defaults. */
export type SweepRequest = Pick<SweepSpec, 'name' | 'run' | 'max_seeds'> &
  Partial<Omit<SweepSpec, 'space'>> & { space: Record<string, Partial<Dimension>> };

/** A sweep's event reports what it starts; no event reports the progress of its runs in between. */
const REFETCH_MS = 15_000;

/** Sweeps, latest first, page by page. */
export const sweepsQuery = infiniteQueryOptions({
  queryKey: keys.sweeps(),
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET('/api/v1/sweeps', { params: { query: { cursor: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
  refetchInterval: ({ state: { data } }) =>
    data?.pages.some(({ items }) => items.some(({ state }) => state === 'running')) ? REFETCH_MS : false,
});

/** A sweep with its configurations and the scores of their seeds. */
export const sweepQuery = (id: string) =>
  queryOptions({
    queryKey: keys.sweep(id),
    meta: { dependsOn: (data) => (data ? [['run', membersOf(data as SweepDetail), []]] : []) },
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/sweeps/{sweep_id}', { ...sweepPath(id), signal })),
  });

type ScatterRequest = { setting: string; log: boolean | undefined; theme: 'light' | 'dark' };

/** The scores of a sweep against a setting, drawn anew whenever a configuration changes. */
export const sweepScatterQuery = (sweep: SweepDetail, request: ScatterRequest) =>
  queryOptions({
    queryKey: keys.figure('sweep', sweep.id, request, sweep.revision, sweep.configurations),
    queryFn: async ({ signal }) => {
      const { log, ...query } = request;
      const params = {
        ...sweepPath(sweep.id).params,
        query: { ...query, ...(log === undefined ? {} : { log }) },
      };
      // OpenAPI types plotly's data and layout as plain objects.
      return wholeFigure(
        (await unwrap<unknown>(api.GET('/api/v1/sweeps/{sweep_id}/scatter', { params, signal }))) as Answer,
      );
    },
    staleTime: Infinity,
    gcTime: 30_000,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });

const sweepPath = (id: string) => ({ params: { path: { sweep_id: id } } });

/** The ids of a sweep's runs. */
const membersOf = ({ configurations }: SweepDetail): string[] =>
  configurations.flatMap(({ runs }) => runs.flatMap(({ run }) => run ?? []));

/** Starts a sweep; requests with the same key start it once. */
export const createSweep = (request: SweepRequest, key: string): Promise<Sweep> =>
  unwrap(api.POST('/api/v1/sweeps', { body: request as SweepSpec, headers: { 'Idempotency-Key': key } }));

/** The actions on one sweep. */
export const sweepActions = {
  stop: (id: string) => unwrap(api.POST('/api/v1/sweeps/{sweep_id}/stop', sweepPath(id))),
  retry: (id: string) => unwrap(api.POST('/api/v1/sweeps/{sweep_id}/retry', sweepPath(id))),
  extend: (id: string, body: SweepExtension) =>
    unwrap(api.POST('/api/v1/sweeps/{sweep_id}/extend', { ...sweepPath(id), body })),
  change: (id: string, body: SweepChanges) =>
    unwrap(api.PATCH('/api/v1/sweeps/{sweep_id}', { ...sweepPath(id), body })),
  delete: (id: string) => unwrap(api.DELETE('/api/v1/sweeps/{sweep_id}', sweepPath(id))),
};

/** Runs a change of a sweep, then refetches it, the list of sweeps and the runs. */
export function useSweepMutation<T>(id: string, change: (value: T) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(
        [keys.sweep(id), keys.sweeps(), keys.allRuns()].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      ),
  });
}
