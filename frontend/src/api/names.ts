import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, unwrap } from './client';
import { keys } from './keys';

/** The most runs that the service names in one view. */
const MAX_NAMED = 10_000;

/** What a view may show beside names, which then leave it out. */
export type Beside = 'algorithm' | 'environment';

/** What runs are called in a view that shows these: by what differs among them. */
export const namesQuery = (runs: readonly string[], beside: readonly Beside[] = []) =>
  queryOptions({
    queryKey: keys.names(runs, beside),
    queryFn: ({ signal }) =>
      unwrap(
        api.POST('/api/v1/runs/names', {
          body: { runs: runs.slice(0, MAX_NAMED), beside: [...beside] },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });

type Named = { id: string; name: string };

export type ViewNames = {
  /** What the names have in common, which they leave out. */
  shared: string;
  /** What a run is called in the view; until that is known, by its own name. */
  of: (run: Named) => string;
  /** What a run is called where its own name helps too: for screen readers, and as a tooltip. */
  label: (run: Named) => string;
};

/** What runs are called in a view that shows these. */
export function useNames(runs: readonly Named[], beside?: readonly Beside[]): ViewNames {
  const ids = useMemo(() => runs.map(({ id }) => id), [runs]);
  const { data } = useQuery(namesQuery(ids, beside));
  return useMemo(() => {
    const names = new Map(data?.items.map(({ run, name }) => [run, name]));
    const of = ({ id, name }: Named): string => names.get(id) ?? name;
    const label = (run: Named): string => (run.name.includes(of(run)) ? run.name : `${run.name}: ${of(run)}`);
    return { shared: data?.shared ?? '', of, label };
  }, [data]);
}
