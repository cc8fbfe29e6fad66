import type { RunsQuery } from '@/api/runs';
import type { RunState } from '@/lib/run';
import type { runsSearch } from '@/lib/search';

/** The search parameters of the runs page. */
export type RunsSearch = ReturnType<typeof runsSearch>;

export const STATE_FILTERS = {
  all: { label: 'All', states: [] },
  active: { label: 'Active', states: ['queued', 'starting', 'running', 'stopping', 'lost'] },
  finished: { label: 'Finished', states: ['finished'] },
  stopped: { label: 'Stopped', states: ['stopped'] },
  failed: { label: 'Failed', states: ['failed'] },
} satisfies Record<string, { label: string; states: RunState[] }>;

export type StateFilter = keyof typeof STATE_FILTERS;

export const DEFAULT_SORT = '-created_at';

export const stateFilter = (search: RunsSearch): StateFilter =>
  search.state && search.state in STATE_FILTERS ? (search.state as StateFilter) : 'all';

/** The query of the service for the page's parameters. */
export function toQuery(search: RunsSearch): RunsQuery {
  const { states } = STATE_FILTERS[stateFilter(search)];
  return {
    sort: search.sort ?? DEFAULT_SORT,
    ...(search.q ? { filter: search.q } : {}),
    ...(states.length > 0 ? { state: [...states] } : {}),
    ...(search.archived ? { archived: 'true' as const } : {}),
  };
}

/** Whether the parameters exclude any run. */
export const isFiltered = (search: RunsSearch): boolean =>
  Boolean(search.q) || stateFilter(search) !== 'all' || Boolean(search.archived);

/** The page's parameters as one filter of the service, for an action on everything that matches. */
export function toFilter(search: RunsSearch, except: Iterable<string> = []): string {
  const { states } = STATE_FILTERS[stateFilter(search)];
  return [
    `archived:${search.archived ? 'true' : 'false'}`,
    ...(states.length > 0 ? [`(${states.map((state) => `state:${state}`).join(' or ')})`] : []),
    ...(search.q ? [`(${search.q})`] : []),
    ...[...except].map((id) => `id!=${id}`),
  ].join(' ');
}
