import { keepPreviousData, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Storage = components['schemas']['StorageOut'];
export type RunStorage = components['schemas']['RunStorage'];
export type Retention = components['schemas']['RetentionOut'];
/** The settings of the installation, or those of a group with the audit trail's ignored. */
export type Policy = components['schemas']['InstallationPolicy'];
export type RetentionPreview = components['schemas']['Preview'];

export const storageQuery = queryOptions({
  queryKey: keys.storage(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/storage', { signal })),
});

export const storageRunsQuery = (limit: number) =>
  queryOptions({
    queryKey: keys.storageRuns(limit),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/storage/runs', { params: { query: { limit } }, signal }))).items,
    placeholderData: keepPreviousData,
  });

export const retentionQuery = queryOptions({
  queryKey: keys.retention(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/retention', { signal })),
});

/** What clean-up would remove with these settings of a group; null: of the installation. */
export const previewRetention = (group: string | null, policy: Policy) =>
  unwrap(api.POST('/api/v1/retention/preview', { body: { group, policy } }));

function setRetention(group: string | null, { audit_days, ...policy }: Policy) {
  return group === null
    ? unwrap(
        api.PUT('/api/v1/retention/installation', { body: { ...policy, audit_days: audit_days ?? null } }),
      )
    : unwrap(api.PUT('/api/v1/retention/groups', { body: { group, policy } }));
}

/** Saves the settings of a group; null: of the installation. */
export function useSetRetention(group: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (policy: Policy) => setRetention(group, policy),
    onSuccess: (retention) => client.setQueryData(keys.retention(), retention),
  });
}

/** Deletes the settings of a group. */
export function useDeleteGroupRetention() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (group: string) =>
      unwrap(api.DELETE('/api/v1/retention/groups', { params: { query: { group } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.retention() }),
  });
}
