import { ActionIcon, Checkbox } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Fragment, useMemo, useState } from 'react';
import { runGroupsQuery, type GroupBy, type GroupSort, type RunGroup } from '@/api/comparisons';
import { useNames } from '@/api/names';
import { type Run, runsByIdQuery } from '@/api/runs';
import { LoadingButton } from '@/components/controls';
import { Interval } from '@/components/Estimate';
import { Empty, Loading, Problem } from '@/components/feedback';
import { RunLink } from '@/components/run/RunLink';
import { StateBadge } from '@/components/run/StateBadge';
import { Early, Name, Score } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import { formatCount, formatScore, formatInteger, plural } from '@/lib/format';
import { STATES, stepsOf } from '@/lib/run';
import { MAX_COMPARED } from '@/lib/runBounds';
import { defined } from '@/lib/search';
import { BulkBar } from './BulkBar';
import { groupFilter, groupSort, toQuery, type RunsSearch } from './filters';
import { useGroupKeys } from './groupKeys';
import classes from './runs.module.css';
import { useSelection } from './selection';

/** The number of runs listed per group; one query takes up to 100 ids. */
const MAX_LISTED = 50;
const NONE: readonly Run[] = [];

/** What runs are grouped by; `seed` groups the runs that differ in nothing else. */
const TITLES: Readonly<Record<string, string>> = {
  seed: 'Config',
  algorithm: 'Algorithm',
  environment: 'Environment',
  group: 'Group',
  state: 'State',
  host: 'Host',
};

type Props = {
  by: GroupBy;
  search: RunsSearch;
  onSelected: (keys: string | undefined) => void;
  onSort: (sort: GroupSort) => void;
  onClear: () => void;
};

/** What stands for a group in the selection, which has no empty ids, as that of runs without a value would be, and is
 * a list with commas in addresses. */
const idOf = ({ key }: RunGroup): string => key.replaceAll(',', '%2C') || '!';

/** Groups of runs: one row each with its median score, expandable to list its runs. */
export function RunGroups({ by, search, onSelected, onSort, onClear }: Props) {
  const { filter, state, archived } = toQuery(search);
  const sort = groupSort(search);
  const query = {
    by,
    ...(sort ? { sort } : {}),
    ...(filter ? { filter } : {}),
    ...(state ? { state } : {}),
    ...(archived ? { archived } : {}),
  };
  const { data, error, refetch, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } =
    useInfiniteQuery(runGroupsQuery(query));
  const groups = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data]);
  const order = useMemo(() => groups.map(idOf), [groups]);
  const scales = useMemo(() => scalesOf(groups), [groups]);
  const { ids: keys, toggle } = useSelection(order, search.selected, onSelected);
  const selectedGroups = groups.filter((group) => keys.has(idOf(group)));
  const selectedRuns = new Set(selectedGroups.flatMap(({ runs }) => runs));
  // The service lists the ids of the latest runs of a group only.
  const large = selectedGroups.find(({ n, runs }) => n > runs.length);
  const navigate = useNavigate();
  const table = useGroupKeys(() => {
    if (large || selectedRuns.size < 2 || selectedRuns.size > MAX_COMPARED) return;
    const search = { list: 'beside' as const, runs: [...selectedRuns].join(',') };
    void navigate({ to: '/', search: by === 'seed' ? { ...search, group: by } : search });
  });
  const problem = error && (
    <Problem
      error={error}
      invalid="Invalid filter"
      onRetry={() => void (isFetchNextPageError ? fetchNextPage() : refetch())}
    />
  );
  if (error && groups.length === 0) return problem;
  if (!data) return <Loading label="Loading the groups" lines={8} />;
  if (groups.length === 0) return <Empty>No matching runs.</Empty>;
  const shared = data.pages.at(-1)?.shared_name;
  const header = (
    field: GroupSort,
    title: string,
    {
      className,
      first = `-${field}` as GroupSort,
      note,
    }: { className?: string; first?: GroupSort; note?: string },
  ) => (
    <GroupHeader field={field} first={first} sort={sort} onSort={onSort} className={className} note={note}>
      {title}
    </GroupHeader>
  );
  return (
    <>
      {problem}
      <div className={`panel ${classes.groups}`}>
        <table ref={table} className="grid" aria-label={`Runs by ${by}`}>
          <thead>
            <tr>
              <th>
                <span className="visually-hidden">Select</span>
              </th>
              <th>
                <span className="visually-hidden">Expand</span>
              </th>
              {header('name', TITLES[by] ?? 'Value', { first: 'name', ...(shared && { note: shared }) })}
              {header('n', 'Runs', { className: 'right' })}
              <th className="wide">States</th>
              {header('score', 'Median score', { className: 'right' })}
              <th className="wide">Scores, 95 % CI</th>
              {header('best_return', 'Best', { className: 'right wide' })}
              {header('agent_steps', 'Agent steps', { className: 'right wide' })}
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <GroupRow
                key={group.key}
                group={group}
                by={by}
                search={search}
                scale={scales.get(group.environment ?? '')}
                selected={keys.has(idOf(group))}
                onToggle={() => toggle(idOf(group))}
              />
            ))}
          </tbody>
        </table>
        {hasNextPage && (
          <LoadingButton
            variant="subtle"
            m={8}
            loading={isFetchingNextPage}
            onClick={() => void fetchNextPage()}
          >
            {formatInteger(groups.length)} of {plural(data.pages[0]?.total ?? 0, 'group')}: show more
          </LoadingButton>
        )}
      </div>
      <BulkBar
        ids={selectedRuns}
        refused={
          large &&
          `${large.name} has ${formatInteger(large.n)} runs, too many for a group: filter the list and select all that match.`
        }
        canFork={selectedGroups.some(({ agent_steps }) => agent_steps > 0)}
        archived={search.archived ?? false}
        grouped={by === 'seed'}
        onClear={onClear}
      />
    </>
  );
}

type HeaderProps = {
  field: GroupSort;
  /** The order of the first press. */
  first: GroupSort;
  sort: GroupSort | undefined;
  onSort: (sort: GroupSort) => void;
  className: string | undefined;
  /** What all cells have in common. */
  note: string | undefined;
  children: string;
};

/** A column's header; pressing it sorts, pressing it again reverses the order. */
function GroupHeader({ field, first, sort, onSort, className, note, children }: HeaderProps) {
  const descending = `-${field}` as GroupSort;
  const up = sort === field;
  const down = sort === descending;
  return (
    <th className={className} aria-sort={up ? 'ascending' : down ? 'descending' : 'none'}>
      <button
        type="button"
        className={classes.sort}
        onClick={() => onSort(down ? field : up ? descending : first)}
      >
        {children}
        {up && <IconArrowUp size={12} aria-hidden="true" />}
        {down && <IconArrowDown size={12} aria-hidden="true" />}
      </button>
      {note && <span className="muted whole"> {note}</span>}
    </th>
  );
}

/**
 * A group's name, as a link to its runs where a filter selects them. Where they differ only in the seed, the link leads
 * to their comparison, or to the only run; if they are too many, there is none.
 */
function GroupName({ group, by, search }: { group: RunGroup; by: GroupBy; search: RunsSearch }) {
  const { key, name, runs, n } = group;
  const filter = groupFilter(by, key);
  const [only] = runs;
  if (filter !== undefined) {
    const q = search.q ? `(${search.q}) ${filter}` : filter;
    const rest = defined({ ...search, group: undefined, selected: undefined, q });
    return (
      <Link to="/" search={rest}>
        <Name name={name} />
      </Link>
    );
  }
  if (by === 'seed' && n === 1 && only) {
    return (
      <Link to="/runs/$runId" params={{ runId: only }}>
        <Name name={name} />
      </Link>
    );
  }
  if (by === 'seed' && n <= runs.length) {
    return (
      <Link to="/" search={{ list: 'beside', runs: runs.join(','), group: 'seed' }}>
        <Name name={name} />
      </Link>
    );
  }
  return <Name name={name} />;
}

type RowProps = {
  group: RunGroup;
  by: GroupBy;
  search: RunsSearch;
  /** The scores at the ends of the environment's scale. */
  scale: Scale | undefined;
  selected: boolean;
  onToggle: () => void;
};

type Scale = readonly [from: number, to: number];

/** By environment, the common scale of the scores and intervals of its groups. */
function scalesOf(groups: readonly RunGroup[]): ReadonlyMap<string, Scale> {
  const scales = new Map<string, Scale>();
  for (const { environment, score, scores } of groups) {
    const ends = [...scores, score.low, score.high].filter((end) => end !== null);
    if (environment === null || ends.length === 0) continue;
    const [from, to] = scales.get(environment) ?? [Infinity, -Infinity];
    scales.set(environment, [Math.min(from, ...ends), Math.max(to, ...ends)]);
  }
  return scales;
}

const NOT_COMBINED = 'Scores of several environments are not combined.';

function GroupRow({ group, by, search, scale, selected, onToggle }: RowProps) {
  const [open, setOpen] = useState(false);
  const { value, low, high } = group.score;
  const isMixed = !group.environment;
  const dots = scale && (
    <Interval
      estimate={group.score}
      from={scale[0]}
      to={scale[1]}
      colour="var(--accent)"
      scores={group.scores}
    />
  );
  const interval = low !== null && high !== null ? `[${formatScore(low)}, ${formatScore(high)}]` : '';
  return (
    <>
      <tr>
        <td style={{ width: 20, paddingRight: 0 }}>
          <Checkbox size="xs" aria-label={`Select ${group.name}`} checked={selected} onChange={onToggle} />
        </td>
        <td style={{ width: 28 }}>
          <ActionIcon
            size={20}
            variant="subtle"
            color="gray"
            aria-expanded={open}
            aria-label={`Runs of ${group.name}`}
            onClick={() => setOpen(!open)}
          >
            {open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          </ActionIcon>
        </td>
        <td className={classes.groupName}>
          <GroupName group={group} by={by} search={search} />
          {by === 'algorithm' && group.environment && (
            <span className="muted"> on {shortEnvironmentName(group.environment)}</span>
          )}
          <div className={classes.phone}>{dots}</div>
        </td>
        <td className="right num">{group.n}</td>
        <td className="wide">
          <span className="row">
            {STATES.filter((state) => group.states[state]).map((state) => (
              <Fragment key={state}>
                <StateBadge state={state} />
                <span className="num">{group.states[state]}</span>
              </Fragment>
            ))}
          </span>
        </td>
        <td
          className="right num nowrap"
          title={
            isMixed ? NOT_COMBINED : `Of ${plural(group.n_scored, 'run')} that did not break off, not early`
          }
        >
          {isMixed ? <span className="muted">several environments</span> : <Score value={value} />}
          {group.n_broken_off > 0 && !isMixed && (
            <div className="muted">
              {group.states.finished ?? 0} of {group.n} finished
            </div>
          )}
          <div className={`muted ${classes.phone}`}>{interval}</div>
        </td>
        <td
          className="num nowrap wide"
          title={interval ? undefined : isMixed ? NOT_COMBINED : 'An interval needs 5 scores.'}
        >
          {dots}
          {interval}
        </td>
        <td className="right num wide">
          <Score value={group.best_return} />
        </td>
        <td className="right num wide">
          {/* Of runs that count iterations, the agent steps are not known. */}
          {(group.agent_steps > 0 || group.iterations === 0) && formatCount(group.agent_steps)}
          {group.iterations > 0 && (
            <div className="muted nowrap">{formatCount(group.iterations)} iterations</div>
          )}
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={2} />
          <td colSpan={7}>
            <Members ids={group.runs.slice(0, MAX_LISTED)} n={group.n} />
          </td>
        </tr>
      )}
    </>
  );
}

function Members({ ids, n }: { ids: readonly string[]; n: number }) {
  const { data, error } = useInfiniteQuery(runsByIdQuery(ids));
  const names = useNames(data?.pages[0]?.items ?? NONE);
  if (!data) {
    if (error) return <Problem error={error} />;
    return <Loading label="Loading the runs of the group" lines={2} />;
  }
  return (
    <ul className={classes.members}>
      {data.pages.flatMap(({ items }) =>
        items.map((run) => (
          <li key={run.id}>
            <StateBadge state={run.state} reason={run.state_reason} />
            <RunLink run={run} names={names} />
            <span>
              score <span className="num">{formatScore(run.score)}</span>
              {run.score_is_early && <Early />}
            </span>
            <span className="muted">
              <span className="num">{formatCount(run.agent_steps)}</span> {stepsOf(run)}
            </span>
          </li>
        )),
      )}
      {n > ids.length && <li className="muted">and {formatInteger(n - ids.length)} more</li>}
    </ul>
  );
}
