/** The search parameters of a replay. */
import { checked, idOf, type Unchecked } from '@/lib/search';

export const replaySearch = (search: Unchecked) =>
  checked({
    at: typeof search.at === 'number' && search.at >= 0 ? Math.floor(search.at) : undefined,
    /** The branch whose fan is shown. */
    branch: idOf(search.branch),
  });
