import { Button } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactNode, useCallback, useMemo, useRef } from 'react';
import { runFieldsQuery, type RunField } from '@/api/runFields';
import { deletedRunsQuery, runsQuery } from '@/api/runs';
import { TextLink } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { FirstSteps, MAX_RUNS } from '@/features/home/FirstSteps';
import { Welcome } from '@/features/home/Welcome';
import { BulkBar, SelectEverything } from '@/features/runs/BulkBar';
import { useColumns } from '@/features/runs/columnLayout';
import { ColumnMenu } from '@/features/runs/ColumnMenu';
import { EmptyRuns } from '@/features/runs/EmptyRuns';
import {
  DEFAULT_SORT,
  isFiltered,
  stateFilter,
  toFilter,
  toQuery,
  type RunsSearch,
} from '@/features/runs/filters';
import { RunGroups } from '@/features/runs/RunGroups';
import { RunsTable } from '@/features/runs/RunsTable';
import classes from '@/features/runs/runs.module.css';
import { RunsToolbar } from '@/features/runs/RunsToolbar';
import { useSelection } from '@/features/runs/selection';
import { whyNotForked } from '@/lib/run';
import { defined } from '@/lib/search';

const NO_FIELDS: readonly RunField[] = [];

type Props = {
  search: RunsSearch;
  onSearch: (search: RunsSearch, replace?: boolean) => void;
  /** The title. */
  head: ReactNode;
};

/** The list of runs, or the first steps of an empty installation. */
export function RunsView({ search, onSearch, head }: Props) {
  const {
    data,
    error,
    isPending,
    isPlaceholderData,
    hasNextPage,
    isFetchingNextPage,
    isFetchNextPageError,
    fetchNextPage,
    refetch,
  } = useInfiniteQuery({
    ...runsQuery(toQuery(search)),
    placeholderData: keepPreviousData,
  });
  const runs = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const total = data?.pages.at(-1)?.total;
  const nothingListed = !error && !isPlaceholderData && total === 0 && !isFiltered(search);
  const archived = useInfiniteQuery({
    ...runsQuery({ archived: 'true', limit: 1 }),
    enabled: nothingListed,
  });
  const nArchived = archived.data?.pages[0]?.total;
  const nDeleted = useInfiniteQuery({
    ...deletedRunsQuery,
    enabled: nothingListed && nArchived === 0,
  }).data?.pages[0]?.total;
  const fields = useQuery(runFieldsQuery).data ?? NO_FIELDS;
  const denied = useDenied();
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !error) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, error, fetchNextPage]);
  const change = (to: { [K in keyof RunsSearch]: RunsSearch[K] | undefined }, replace = false): void => {
    onSearch(defined({ ...search, ...to }), replace);
  };
  const { columns, layout, setLayout } = useColumns(fields, search.columns, (parameter) =>
    change({ columns: parameter }, true),
  );
  const order = useMemo(() => runs.map(({ id }) => id), [runs]);
  const select = (selected: string | undefined): void => change({ selected }, true);
  const selection = useSelection(order, search.selected, select);

  const list = useRef<HTMLDivElement>(null);
  const clear = (): void => {
    select(undefined);
    list.current?.focus();
  };

  const showAll = (
    <Button variant="default" onClick={() => onSearch({})}>
      Show all runs
    </Button>
  );
  const problem = error && (
    <Problem
      error={error}
      invalid="Invalid filter"
      onRetry={() => void (isFetchNextPageError ? fetchNextPage() : refetch())}
    />
  );
  const table = () => {
    if (error && runs.length === 0) {
      return (
        <>
          {problem}
          {isFiltered(search) && <p>{showAll}</p>}
        </>
      );
    }
    if (isPending) return <Loading label="Loading the runs" lines={8} />;
    if (runs.length > 0 && search.group)
      return (
        <RunGroups
          // Another grouping must not show the groups of the previous one while it loads.
          key={search.group}
          by={search.group}
          search={search}
          onSelected={select}
          onSort={(sort) => change({ sort })}
          onClear={clear}
        />
      );
    if (runs.length > 0) {
      return (
        <RunsTable
          runs={runs}
          total={total ?? runs.length}
          columns={columns}
          layout={layout}
          onLayout={setLayout}
          selection={selection}
          sort={search.sort ?? DEFAULT_SORT}
          onSort={(sort) => change({ sort })}
          onEndReached={loadMore}
        />
      );
    }
    if (nothingListed) {
      if (archived.error) return <Problem error={archived.error} onRetry={() => void archived.refetch()} />;
      if (nArchived === undefined) return <Loading label="Loading the runs" lines={8} />;
      return <EmptyRuns archived={nArchived} onArchived={() => change({ archived: true })} />;
    }
    return (
      <div className="panel">
        <Empty action={showAll}>No matching runs.</Empty>
      </div>
    );
  };

  if (nothingListed && nArchived === 0) {
    return (
      <div className="page">
        {Boolean(nDeleted) && (
          <p style={{ margin: '0 0 12px' }}>
            All runs are deleted. <TextLink to="/deleted">Restore them</TextLink> within an hour of that.
          </p>
        )}
        <Welcome />
      </div>
    );
  }
  return (
    <div className={`page ${classes.page}`}>
      {head}
      {(!nothingListed || Boolean(nArchived)) && (
        <RunsToolbar
          total={total}
          state={stateFilter(search)}
          archived={search.archived ?? false}
          columns={!search.group && <ColumnMenu layout={layout} onLayout={setLayout} />}
          fields={fields}
          group={search.group}
          onGroup={(group) => change({ group, selected: undefined, sort: undefined })}
          onState={(state) => change({ state: state === 'all' ? undefined : state })}
          onArchived={(archived) => change({ archived: archived || undefined })}
        />
      )}
      {!search.group && total !== undefined && (
        <SelectEverything loaded={order} total={total} selection={selection} />
      )}
      <div ref={list} tabIndex={-1} className={classes.list}>
        {/* In the list's place, which does not move then. */}
        {denied === undefined && total !== undefined && total <= MAX_RUNS && !isFiltered(search) && (
          <FirstSteps runs={runs} />
        )}
        {/* The groups show their own. */}
        {runs.length > 0 && !search.group && problem}
        {table()}
      </div>
      {!search.group && (
        <BulkBar
          ids={selection.ids}
          {...(selection.everything && total !== undefined && !isPlaceholderData
            ? {
                matching: {
                  filter: toFilter(search, selection.except),
                  expected: Math.max(0, total - selection.except.size),
                },
              }
            : {})}
          archived={search.archived ?? false}
          notShown={isPending || isPlaceholderData ? 0 : selection.notShown}
          canFork={runs.some((run) => selection.ids.has(run.id) && whyNotForked(run) === undefined)}
          onClear={clear}
          onLeave={() => list.current?.querySelector<HTMLElement>('[role=row][tabindex="0"]')?.focus()}
        />
      )}
    </div>
  );
}
