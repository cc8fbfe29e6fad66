import { ActionIcon, Button, Checkbox } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, useMemo, useState } from 'react';
import { runGroupsQuery, type GroupBy, type RunGroup } from '@/api/comparisons';
import { runsQuery } from '@/api/runs';
import { Empty, Loading, Problem } from '@/components/feedback';
import { StateMark } from '@/components/StateMark';
import { formatCount, formatScore, formatWhole, plural } from '@/lib/format';
import { STATES } from '@/lib/states';
import { shortWorld } from '@/lib/world';
import { BulkBar } from './BulkBar';
import classes from './runs.module.css';
import { toQuery, type RunsSearch } from './search';
import { useSelection } from './selection';

/** Of a group's runs, at most so many are listed under it: their ids have to fit into one question. */
const LISTED = 50;

type Props = {
  by: GroupBy;
  search: RunsSearch;
  onSelected: (keys: string | undefined) => void;
  onClear: () => void;
};

/** The runs in groups, each a row with the mean of its scores; opened, it lists its runs. */
export function RunGroups({ by, search, onSelected, onClear }: Props) {
  const { filter, state, archived } = toQuery(search);
  const asked = {
    by,
    ...(filter ? { filter } : {}),
    ...(state ? { state } : {}),
    ...(archived ? { archived } : {}),
  };
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    runGroupsQuery(asked),
  );
  const groups = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data]);
  const order = useMemo(() => groups.map(({ key }) => key), [groups]);
  const { ids: keys, toggle } = useSelection(order, search.selected, onSelected);
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the groups" lines={8} />;
  const picked = groups.filter(({ key }) => keys.has(key));
  const chosen = new Set(picked.flatMap(({ runs }) => runs));
  if (groups.length === 0) return <Empty>No run fits.</Empty>;
  return (
    <>
      <div className={`panel ${classes.groups}`}>
        <table className="grid" aria-label={`Runs by ${by}`}>
          <thead>
            <tr>
              <th>
                <span className="visually-hidden">Select</span>
              </th>
              <th>
                <span className="visually-hidden">Open</span>
              </th>
              <th>{by === 'seed' ? 'Setting' : by === 'algorithm' ? 'Algorithm' : 'Environment'}</th>
              <th className="right">{by === 'seed' ? 'Seeds' : 'Runs'}</th>
              <th className="wide">States</th>
              <th className="right">Mean score ± 95 %</th>
              <th className="right">Best</th>
              <th className="right">Agent steps</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <GroupRow
                key={group.key}
                group={group}
                by={by}
                selected={keys.has(group.key)}
                onToggle={() => toggle(group.key)}
              />
            ))}
          </tbody>
        </table>
        {hasNextPage && (
          <Button variant="subtle" m={8} loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {formatWhole(groups.length)} of {plural(data.pages[0]?.total ?? 0, 'group')}: show more
          </Button>
        )}
      </div>
      <BulkBar
        ids={chosen}
        canFork={picked.some(({ agent_steps }) => agent_steps > 0)}
        grouped={by === 'seed'}
        onClear={onClear}
      />
    </>
  );
}

type RowProps = { group: RunGroup; by: GroupBy; selected: boolean; onToggle: () => void };

function GroupRow({ group, by, selected, onToggle }: RowProps) {
  const [open, setOpen] = useState(false);
  const { value, low, high } = group.score;
  const half = low !== null && high !== null ? ` ± ${formatScore((high - low) / 2)}` : '';
  const where = by === 'seed' || !group.environment ? '' : shortWorld(group.environment);
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
        <td className={classes.setting}>
          {group.name}
          {by === 'algorithm' && where && <span className="muted"> on {where}</span>}
        </td>
        <td className="right num">{group.n}</td>
        <td className="wide">
          <span className="row">
            {STATES.filter((state) => group.states[state]).map((state) => (
              <Fragment key={state}>
                <StateMark state={state} />
                <span className="num">{group.states[state]}</span>
              </Fragment>
            ))}
          </span>
        </td>
        <td className="right num nowrap" title={`${plural(group.n_scored, 'run')} with a score`}>
          {group.environment ? formatScore(value) + half : <span className="muted">several worlds</span>}
        </td>
        <td className="right num">{formatScore(group.best_return)}</td>
        <td className="right num">{formatCount(group.agent_steps)}</td>
      </tr>
      {open && (
        <tr>
          <td colSpan={2} />
          <td colSpan={6}>
            <Members ids={group.runs.slice(0, LISTED)} n={group.n} />
          </td>
        </tr>
      )}
    </>
  );
}

function Members({ ids, n }: { ids: readonly string[]; n: number }) {
  const filter = ids.map((id) => `id=${id}`).join(' or ');
  const { data, error } = useInfiniteQuery(runsQuery({ filter, archived: 'all' }));
  if (error) return <Problem error={error} />;
  if (!data) return <Loading label="Loading the runs of the group" lines={2} />;
  return (
    <ul className={classes.members}>
      {data.pages.flatMap(({ items }) =>
        items.map((run) => (
          <li key={run.id}>
            <StateMark state={run.state} reason={run.state_reason} />
            <Link to="/runs/$runId" params={{ runId: run.id }} className="ellipsis">
              {run.name}
            </Link>
            <span>
              seed <span className="num">{run.seed}</span>
            </span>
            <span>
              score <span className="num">{formatScore(run.score)}</span>
            </span>
            <span className="muted">
              <span className="num">{formatCount(run.agent_steps)}</span> agent steps
            </span>
          </li>
        )),
      )}
      {n > ids.length && <li className="muted">and {formatWhole(n - ids.length)} more</li>}
    </ul>
  );
}
