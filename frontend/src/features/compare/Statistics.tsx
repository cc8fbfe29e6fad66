import { SegmentedControl, TextInput, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import { comparisonQuery, type Comparison, type GroupStatistics } from '@/api/comparisons';
import type { Run } from '@/api/runs';
import { styles, type Style } from '@/components/chart/colours';
import { Swatch } from '@/components/chart/Swatch';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatCount, formatDuration, formatScore, formatWhole } from '@/lib/format';
import { groupBy } from '@/lib/group';
import { parseNumber } from '@/lib/number';
import { hasEnded } from '@/lib/states';
import { shortWorld } from '@/lib/world';
import classes from './compare.module.css';
import { formatEstimate, scaleOf } from './estimates';
import { Improvements } from './Improvements';
import { Interval } from './Interval';

const WAIT_MS = 400;

export type StatisticsView = {
  score: Comparison['score'];
  at: Comparison['at'];
  threshold: number | undefined;
};

type Props = {
  runs: readonly Run[];
  /** Whether the chart above draws groups, each in a colour of its own. */
  grouped: boolean;
  view: StatisticsView;
  onView: (view: StatisticsView) => void;
};

/** Which setting is better, and how sure one may be: groups of seeds with intervals, world by world. */
export function Statistics({ runs, grouped, view, onView }: Props) {
  const ids = runs.map(({ id }) => id);
  const growing = runs.some(({ state }) => !hasEnded(state));
  const { data, error, refetch } = useQuery(comparisonQuery({ runs: ids, ...view, growing }));
  const scheme = useComputedColorScheme('light');
  const drawn = grouped ? (data?.groups.map(({ id }) => id) ?? []) : [];
  const looks = styles(drawn, scheme);
  const worlds = groupBy(data?.groups ?? [], ({ environment }) => environment);
  return (
    <section className={classes.statistics} aria-label="Statistics">
      <header className={classes.head}>
        <h2 className="section-title">Which is better, and how sure is it?</h2>
        <span className="grow" />
        <SegmentedControl
          size="xs"
          aria-label="Score"
          value={view.score}
          data={[
            { value: 'training', label: 'Last 100 training episodes' },
            { value: 'evaluation', label: 'Newest evaluation' },
          ]}
          onChange={(score) => onView({ ...view, score })}
        />
        <SegmentedControl
          size="xs"
          aria-label="Compared at"
          value={view.at}
          data={[
            { value: 'common', label: 'Where the shortest ends' },
            { value: 'end', label: 'Each at its end' },
          ]}
          onChange={(at) => onView({ ...view, at })}
        />
        <Threshold
          value={view.threshold}
          onValue={(threshold) => {
            if (threshold !== view.threshold) onView({ ...view, threshold });
          }}
        />
      </header>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Computing the statistics" lines={3} />}
      {[...worlds].map(([world, groups]) => (
        <GroupsTable
          key={world}
          groups={groups}
          looks={looks}
          threshold={data?.threshold ?? null}
          {...(worlds.size > 1 ? { world } : {})}
        />
      ))}
      {data && data.improvements.length > 0 && <Improvements comparison={data} />}
      {data?.improvements.length === 0 && data.groups.length > 1 && (
        <Empty>To say which is better, two settings need two seeds each, or more, in one world.</Empty>
      )}
      {data && (
        <span className="muted">
          {data.method}; runs that differ in their seed alone are a group
          {data.threshold !== null && '; times are of training, medians over its runs'}.
        </span>
      )}
    </section>
  );
}

/** Asks once typing has come to rest. */
function Threshold({ value, onValue }: { value: number | undefined; onValue: (value?: number) => void }) {
  const [typed, setTyped] = useState(value === undefined ? '' : String(value));
  const [shown, setShown] = useState(value);
  // Back and forward change the address without a key being pressed.
  if (shown !== value) {
    setShown(value);
    if (parseNumber(typed) !== value) setTyped(value === undefined ? '' : String(value));
  }
  const number = parseNumber(typed);
  const empty = typed.trim() === '';
  const bad = !empty && !Number.isFinite(number);
  const ask = useEffectEvent(() => {
    if (!bad) onValue(empty ? undefined : number);
  });
  useEffect(() => {
    const timer = setTimeout(() => ask(), WAIT_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label className="row">
      Time to a score of
      <TextInput
        w={72}
        inputMode="decimal"
        classNames={{ input: 'num' }}
        value={typed}
        error={bad}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </label>
  );
}

type TableProps = {
  groups: readonly GroupStatistics[];
  looks: ReadonlyMap<string, Style>;
  threshold: number | null;
  world?: string;
};

function GroupsTable({ groups, looks, threshold, world }: TableProps) {
  const [from, to] = scaleOf(groups);
  return (
    <ScrollPanel
      label={world ? `Scores in ${shortWorld(world)}` : 'Scores by setting'}
      className={classes.scroll}
    >
      <table className="grid">
        {world && <caption className={classes.caption}>{shortWorld(world)}</caption>}
        <thead>
          <tr>
            <th>Setting</th>
            <th className="right">Seeds</th>
            <th className="right">At agent steps</th>
            <th>Interquartile mean [95 %]</th>
            <th aria-hidden="true" />
            {threshold !== null && (
              <>
                <th className="right">Reached {formatScore(threshold)}</th>
                <th className="right">Agent steps to it [95 %]</th>
                <th className="right">Time to it [95 %]</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.id}>
              <td>
                <span className={`row ${classes.setting}`}>
                  {looks.has(group.id) && <Swatch {...looks.get(group.id)} />}
                  {group.name}
                </span>
              </td>
              <td className="right num">
                {group.n === group.runs.length ? group.n : `${group.n} of ${group.runs.length}`}
              </td>
              <td className="right num">
                {group.at_agent_steps === null ? 'each end' : formatWhole(group.at_agent_steps)}
              </td>
              <td className="num nowrap">{formatEstimate(group.iqm, formatScore)}</td>
              <td style={{ width: '12%' }}>
                {group.iqm && (
                  <Interval
                    estimate={group.iqm}
                    from={from}
                    to={to}
                    colour={looks.get(group.id)?.colour ?? 'var(--accent)'}
                  />
                )}
              </td>
              {threshold !== null && (
                <>
                  <td className="right num">
                    {group.n_reached} of {group.runs.length}
                  </td>
                  <td className="right num nowrap">
                    {formatEstimate(group.agent_steps_to_threshold, formatCount)}
                  </td>
                  <td className="right num nowrap">
                    {formatEstimate(group.wall_time_s_to_threshold, formatDuration)}
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
