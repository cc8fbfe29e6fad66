import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { served } from '@/lib/base';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type AuditEntry = components['schemas']['AuditEntryOut'];

/** Which entries are shown; `from` and `to` are days in the browser's time zone, both included. */
export type AuditFilter = {
  user?: string | undefined;
  action?: string | undefined;
  address?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
};

/** The filter as the service's parameters; a text field left empty filters nothing. */
export function auditParameters({ user, action, address, from, to }: AuditFilter) {
  return {
    ...(user ? { user } : {}),
    ...(action ? { action } : {}),
    ...(address ? { address } : {}),
    ...(from ? { since: startOf(from).toISOString() } : {}),
    ...(to ? { until: startOf(to, 1).toISOString() } : {}),
  };
}

/** When a day starts in the browser's time zone, or one some days later. */
function startOf(day: string, daysLater = 0): Date {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + daysLater);
}

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: keys.audit(filter),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/api/v1/audit', {
          params: { query: { ...auditParameters(filter), limit: 100, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    // Each visit shows what has happened since.
    staleTime: 0,
  });

export const auditActionsQuery = queryOptions({
  queryKey: keys.auditActions(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/audit/actions', { signal })),
});

/** The address of a file with all matching entries. */
export function auditExportUrl(filter: AuditFilter, format: 'csv' | 'json'): string {
  const query = new URLSearchParams({ format, ...auditParameters(filter) }).toString();
  return served(`/api/v1/audit/export?${query}`);
}
