import { Button } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo, useRef } from 'react';
import { runsQuery } from '@/api/runs';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ButtonLink } from '@/components/links';
import { BulkBar } from '@/features/runs/BulkBar';
import { ColumnMenu, useColumns } from '@/features/runs/ColumnMenu';
import { EmptyRuns } from '@/features/runs/EmptyRuns';
import { RunGroups } from '@/features/runs/RunGroups';
import { RunsTable } from '@/features/runs/RunsTable';
import { RunsToolbar } from '@/features/runs/RunsToolbar';
import { defined } from '@/lib/defined';
import { DEFAULT_SORT, isFiltered, stateFilter, toQuery, type RunsSearch } from '@/features/runs/search';
import { useSelection } from '@/features/runs/selection';

const route = getRouteApi('/frame/');

export default function RunsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  useDocumentTitle('Runs · Callboard');
  const {
    data,
    error,
    isPending,
    isPlaceholderData,
    hasNextPage,
    isFetchingNextPage,
    fetchNextPage,
    refetch,
  } = useInfiniteQuery({
    ...runsQuery(toQuery(search)),
    placeholderData: keepPreviousData,
  });
  const runs = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const total = data?.pages.at(-1)?.total;
  const nothingListed = !error && !isPlaceholderData && total === 0 && !isFiltered(search);
  const putAway = useInfiniteQuery({
    ...runsQuery({ archived: 'true', limit: 1 }),
    enabled: nothingListed,
  }).data?.pages[0]?.total;
  const { columns, hidden, setHidden } = useColumns();
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const change = (to: { [K in keyof RunsSearch]: RunsSearch[K] | undefined }, replace = false): void => {
    void navigate({ search: defined({ ...search, ...to }), replace, resetScroll: !replace });
  };
  const order = useMemo(() => runs.map(({ id }) => id), [runs]);
  const select = (selected: string | undefined): void => change({ selected }, true);
  const selection = useSelection(order, search.selected, select);

  const list = useRef<HTMLDivElement>(null);
  const clear = (): void => {
    select(undefined);
    list.current?.focus();
  };

  const showAll = (
    <Button variant="default" onClick={() => void navigate({ search: {} })}>
      Show all runs
    </Button>
  );
  const table = () => {
    if (error) {
      return (
        <>
          <Problem error={error} onRetry={() => void refetch()} />
          {isFiltered(search) && <p>{showAll}</p>}
        </>
      );
    }
    if (isPending) return <Loading label="Loading the runs" lines={8} />;
    if (runs.length > 0 && search.group)
      return <RunGroups by={search.group} search={search} onSelected={select} onClear={clear} />;
    if (runs.length > 0) {
      return (
        <RunsTable
          runs={runs}
          total={total ?? runs.length}
          columns={columns}
          selection={selection}
          sort={search.sort ?? DEFAULT_SORT}
          onSort={(sort) => change({ sort })}
          onEndInView={more}
        />
      );
    }
    if (nothingListed) {
      if (putAway === undefined) return <Loading label="Loading the runs" lines={8} />;
      return <EmptyRuns archived={putAway} onArchived={() => change({ archived: true })} />;
    }
    return (
      <div className="panel">
        <Empty action={showAll}>No run fits.</Empty>
      </div>
    );
  };

  return (
    <div className="page">
      <div className="row">
        <h1 className="page-title grow">Runs</h1>
        <ButtonLink to="/new" size="sm">
          New run
        </ButtonLink>
      </div>
      {(!nothingListed || Boolean(putAway)) && (
        <RunsToolbar
          total={total}
          state={stateFilter(search)}
          archived={search.archived ?? false}
          columns={!search.group && <ColumnMenu hidden={hidden} onHidden={setHidden} />}
          group={search.group}
          onGroup={(group) => change({ group, selected: undefined })}
          onState={(state) => change({ state: state === 'all' ? undefined : state })}
          onArchived={(archived) => change({ archived: archived || undefined })}
        />
      )}
      <div ref={list} tabIndex={-1}>
        {table()}
      </div>
      {!search.group && (
        <BulkBar
          ids={selection.ids}
          notShown={isPending || isPlaceholderData ? 0 : selection.notShown}
          canFork={runs.some(({ id, agent_steps }) => selection.ids.has(id) && agent_steps > 0)}
          onClear={clear}
        />
      )}
    </div>
  );
}
