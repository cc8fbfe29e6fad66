import type { GroupBy } from '@/api/comparisons';
import type { RunsQuery } from '@/api/runs';
import type { RunState } from '@/lib/states';

/** What the runs page keeps in its address. */
export type RunsSearch = {
  q?: string;
  state?: string;
  sort?: string;
  archived?: boolean;
  group?: GroupBy;
  /** Ids of the selected runs, or keys of the selected groups, with commas between. */
  selected?: string;
};

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

/** The service's question for an address. */
export function toQuery(search: RunsSearch): RunsQuery {
  const { states } = STATE_FILTERS[stateFilter(search)];
  return {
    sort: search.sort ?? DEFAULT_SORT,
    ...(search.q ? { filter: search.q } : {}),
    ...(states.length > 0 ? { state: [...states] } : {}),
    ...(search.archived ? { archived: 'true' as const } : {}),
  };
}

/** Whether the address leaves any run out. */
export const isFiltered = (search: RunsSearch): boolean =>
  Boolean(search.q) || stateFilter(search) !== 'all' || Boolean(search.archived);
