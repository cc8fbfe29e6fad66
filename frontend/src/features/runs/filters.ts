import type { GroupBy, GroupSort } from '@/api/comparisons';
import type { RunsQuery } from '@/api/runs';
import type { RunState } from '@/lib/run';
import type { runsSearch } from '@/components/run/search';

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
    sort: search.sort && search.sort !== 'n' && search.sort !== '-n' ? search.sort : DEFAULT_SORT,
    ...(search.q ? { filter: search.q } : {}),
    ...(search.project ? { project: search.project } : {}),
    ...(states.length > 0 ? { state: [...states] } : {}),
    ...(search.archived ? { archived: 'true' as const } : {}),
  };
}

const GROUP_SORTS = ['name', 'n', 'score', 'best_return', 'agent_steps', 'created_at'] as const;

/** The order of the groups, where the list's order is one that groups have too. */
export const groupSort = ({ sort }: RunsSearch): GroupSort | undefined =>
  GROUP_SORTS.flatMap((field) => [field, `-${field}`] as const).find((offered) => offered === sort);

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;

/** What runs are grouped by as text; all else are settings, whose keys are JSON. */
const TEXTS: readonly string[] = ['algorithm', 'environment', 'group', 'state', 'host', 'queue'];

/** The filter of a group's runs; undefined for runs without a value, or those that differ only in their seed. */
export function groupFilter(by: GroupBy, key: string): string | undefined {
  if (by === 'seed') return undefined;
  const plain = by === 'algorithm' || by === 'environment' ? key : decodeURIComponent(key);
  if (TEXTS.includes(by)) return plain === '' ? undefined : `${by}=${quoted(plain)}`;
  const value: unknown = JSON.parse(plain);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  return `${/^[\w./-]+$/.test(by) ? by : quoted(by)}=${quoted(String(value))}`;
}

/** Whether the parameters exclude any run. */
export const isFiltered = (search: RunsSearch): boolean =>
  Boolean(search.q) || Boolean(search.project) || stateFilter(search) !== 'all' || Boolean(search.archived);

/** The page's parameters as one filter of the service, for an action on everything that matches. */
export function toFilter(search: RunsSearch, except: Iterable<string> = []): string {
  const { states } = STATE_FILTERS[stateFilter(search)];
  return [
    `archived:${search.archived ? 'true' : 'false'}`,
    ...(states.length > 0 ? [`(${states.map((state) => `state:${state}`).join(' or ')})`] : []),
    ...(search.project ? [`project=${quoted(search.project)}`] : []),
    ...(search.q ? [`(${search.q})`] : []),
    ...[...except].map((id) => `id!=${id}`),
  ].join(' ');
}
