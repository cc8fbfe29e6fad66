/** The workspace in another layout: the list alone, beside the charts of what is compared, or hidden. */
import { toFilter } from '@/features/runs/filters';
import type { PageState } from '@/features/views/document';
import type { Layout } from '@/features/views/ViewHead';
import { defined } from '@/lib/search';

/** Everything that is not archived, as a filter. */
const EVERYTHING = 'archived:false';

/**
 * The state in a layout. The list alone leads to the charts of the runs that are selected, else of those that match; the
 * charts lead back to these.
 */
export function withLayout(before: PageState, layout: Layout, project: string | undefined): PageState {
  if (before.page === 'compare') {
    const { runs, q } = before.search;
    if (layout !== 'alone') return { page: 'compare', search: { ...before.search, list: layout } };
    const filter = runs === undefined && q !== EVERYTHING ? q : undefined;
    return { page: 'runs', search: defined({ q: filter, selected: runs }) };
  }
  if (layout === 'alone') return before;
  const { selected, group, q, state, archived } = before.search;
  if (selected !== undefined && group === undefined && !selected.includes('*'))
    return { page: 'compare', search: { runs: selected, list: layout } };
  const isPlain = state === undefined && archived === undefined && project === undefined;
  const filter = isPlain ? (q ?? EVERYTHING) : toFilter(defined({ ...before.search, project }));
  const grouped = group === 'seed' ? group : undefined;
  return { page: 'compare', search: defined({ q: filter, group: grouped, list: layout }) };
}
