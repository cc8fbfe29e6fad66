import { Button, NativeSelect, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { type Comparison, comparisonQuery, type GroupStatistics } from '@/api/comparisons';
import type { Run } from '@/api/runs';
import { useLineStyles } from '@/components/chart/lineStyles';
import { distinctStyles, type Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import { differenceScaleOf, formatEstimate, Interval, scaleOf, verdict } from '@/components/Estimate';
import { Empty, Loading, Problem } from '@/components/feedback';
import type { TermId } from '@/components/glossary';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Terms } from '@/components/Term';
import { shortEnvironmentName } from '@/lib/environments';
import { formatCount, formatDuration, formatScore, formatInteger, plural, protocolLabel } from '@/lib/format';
import { hasEnded, stepsOf, stepsTitle } from '@/lib/run';
import curves from '@/components/chart/curves.module.css';
import classes from './compare.module.css';
import { Threshold } from './Threshold';

const TERMS: readonly TermId[] = [
  ...(['config', 'seed', 'score', 'evaluation', 'iqm'] as const),
  ...(['confidence_interval', 'p_value', 'threshold'] as const),
];

export type StatisticsView = {
  score: Comparison['score'];
  at: Comparison['at'];
  threshold: number | undefined;
  protocol: string | undefined;
};

type Props = {
  runs: readonly Run[];
  /** Whether the chart shows groups, each in its own colour. */
  grouped: boolean;
  /** The styles that groups want. */
  wanted: Styles;
  /** Receives the styles of all groups, and the new style of a group. */
  onStyle: (styles: Styles, group: string, style: number) => void;
  view: StatisticsView;
  onView: (view: StatisticsView) => void;
  /** What follows the statistics, once their height is known. */
  below?: ReactNode;
};

/** Groups of seeds with intervals, one table per environment, and their pairwise comparison. */
export function Statistics({ runs, grouped, wanted, onStyle, view, onView, below }: Props) {
  const ids = runs.map(({ id }) => id);
  const training = runs.some(({ state }) => !hasEnded(state));
  const { data, error, refetch } = useQuery(comparisonQuery({ runs: ids, ...view, training }));
  // In the order of the service's figures.
  const styles = distinctStyles(grouped ? (data?.groups ?? []).map(({ id }) => id) : [], wanted);
  // The protocol in the address may have no evaluations, or none yet.
  const protocols = [...new Set([...(data?.protocols ?? []), ...(view.protocol ? [view.protocol] : [])])];
  const repeated = data?.groups.flatMap(({ runs: own }) => own.filter(({ counted }) => !counted)).length ?? 0;
  const environments = Map.groupBy(data?.groups ?? [], ({ environment }) => environment);
  return (
    <>
      <section className={classes.statistics} aria-label="Statistics">
        <header className={curves.head}>
          <h2 className="section-title">Statistical comparison</h2>
          <span className="grow" />
          <SegmentedControl
            size="xs"
            aria-label="Score"
            value={view.score}
            data={[
              { value: 'training', label: 'Last 100 training episodes' },
              { value: 'evaluation', label: 'Latest evaluation' },
            ]}
            onChange={(score) => onView({ ...view, score })}
          />
          {view.score === 'evaluation' && (
            <NativeSelect
              aria-label="Evaluation protocol"
              value={view.protocol ?? ''}
              data={[
                { value: '', label: 'Each config’s own protocol' },
                ...protocols.map((id) => ({ value: id, label: protocolLabel(id) })),
              ]}
              onChange={({ currentTarget }) =>
                onView({ ...view, protocol: currentTarget.value || undefined })
              }
            />
          )}
          <SegmentedControl
            size="xs"
            aria-label="Compare at"
            value={view.at}
            data={[
              { value: 'common', label: 'At the shortest run’s length' },
              { value: 'end', label: 'At each run’s end' },
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
        {[...environments].map(([environment, groups]) => (
          <GroupsTable
            key={environment}
            groups={groups}
            styles={styles}
            onStyle={(group, style) => onStyle(styles, group, style)}
            threshold={data?.threshold ?? null}
            evaluated={data?.score === 'evaluation'}
            {...(environments.size > 1 ? { environment } : {})}
          />
        ))}
        {data?.groups.some(({ external }) => external) && (
          <p className="muted" role="note">
            External runs have no evaluations: they are compared by training return only, assuming default
            environment config.
          </p>
        )}
        {repeated > 0 && (
          <p className="muted" role="note">
            {plural(repeated, 'run')} not counted: a run and its forks are one sample, and so are runs with
            the same config and seed if the method is deterministic.
          </p>
        )}
        {data && data.improvements.length > 0 && <PairwiseTable comparison={data} />}
        {data?.improvements.length === 0 && data.groups.length > 1 && (
          <Empty>
            A comparison needs two configs in the same environment
            {data.score === 'evaluation' && ', evaluated under the same protocol,'} with at least two seeds
            each; a verdict needs at least four.
          </Empty>
        )}
        {data && <Terms ids={TERMS} />}
        {data && (
          <span className="muted">
            {data.method}
            {data.improvements.length > 1 &&
              `; p-values are corrected by Holm’s method for ${data.improvements.length} comparisons, intervals are not`}
            . A group contains the runs that differ only in their seed, or also in their limits, unless these
            change how a learning rate is annealed
            {data.threshold !== null &&
              `; times to threshold are medians over its runs, of training time until ${data.score === 'evaluation' ? 'an evaluation of at least 30 episodes' : 'the mean of 100 episodes'} reaches it`}
            .
          </span>
        )}
      </section>
      {(data ?? error) && below}
    </>
  );
}

/** A group's runs without those in whose place another one counts. */
const countedOf = ({ runs }: GroupStatistics) => runs.filter(({ counted }) => counted);

type TableProps = {
  groups: readonly GroupStatistics[];
  styles: Styles;
  onStyle: (group: string, style: number) => void;
  threshold: number | null;
  /** Whether the scores are of evaluations, each under a protocol. */
  evaluated: boolean;
  environment?: string;
};

function GroupsTable({ groups, styles, onStyle, threshold, evaluated, environment }: TableProps) {
  const [from, to] = scaleOf(groups);
  const lookOf = useLineStyles();
  const steps = stepsTitle(groups);
  const areMixed = new Set(groups.map(stepsOf)).size > 1;
  return (
    <ScrollPanel
      label={environment ? `Scores in ${shortEnvironmentName(environment)}` : 'Scores by config'}
      className={classes.scroll}
    >
      <table className="grid">
        {environment && <caption className={classes.caption}>{shortEnvironmentName(environment)}</caption>}
        <thead>
          <tr>
            <th>Config</th>
            <th className="right">Seeds</th>
            {evaluated && <th>Protocol</th>}
            <th className="right">At {steps.toLowerCase()}</th>
            <th>Median [95 % CI]</th>
            <th aria-hidden="true" />
            <th className="right">Interquartile mean</th>
            {threshold !== null && (
              <>
                <th className="right">Reached {formatScore(threshold)}</th>
                <th className="right">
                  {steps} to {formatScore(threshold)} [95 % CI]
                </th>
                <th className="right">Time to {formatScore(threshold)} [95 % CI]</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => {
            const style = styles.get(group.id);
            const colour = style === undefined ? undefined : lookOf(style)?.colour;
            return (
              <tr key={group.id}>
                <td>
                  <span className={`row ${classes.groupName}`}>
                    {style !== undefined && (
                      <StylePicker name={group.name} style={style} onStyle={(to) => onStyle(group.id, to)} />
                    )}
                    {group.name}
                  </span>
                </td>
                <td className="right num">
                  {group.n === countedOf(group).length ? group.n : `${group.n} of ${countedOf(group).length}`}
                </td>
                {evaluated && <td className="nowrap">{protocolLabel(group.protocol ?? '')}</td>}
                <td className="right num">
                  {group.at_agent_steps === null ? 'final' : formatInteger(group.at_agent_steps)}
                  {areMixed && group.at_agent_steps !== null && ` ${stepsOf(group)}`}
                </td>
                <td className="num nowrap">{formatEstimate(group.median, formatScore)}</td>
                <td style={{ width: '12%' }}>
                  {group.median && (
                    <Interval
                      estimate={group.median}
                      from={from}
                      to={to}
                      colour={colour ?? 'var(--accent)'}
                      scores={countedOf(group).flatMap(({ score }) => score ?? [])}
                    />
                  )}
                </td>
                <td className="right num">{formatEstimate(group.iqm, formatScore)}</td>
                {threshold !== null && (
                  <>
                    <td className="right num">
                      {group.n_reached} of {countedOf(group).length}
                    </td>
                    <td className="right num nowrap">
                      {formatEstimate(group.agent_steps_to_threshold, formatCount)}
                      {areMixed && group.agent_steps_to_threshold?.value != null && ` ${stepsOf(group)}`}
                    </td>
                    <td className="right num nowrap">
                      {formatEstimate(group.wall_time_s_to_threshold, formatDuration)}
                    </td>
                  </>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollPanel>
  );
}

const percent = (fraction: number): string => `${(fraction * 100).toFixed(0)} %`;

/** More pairs are shown on request: first those with the best group of each environment. */
const MAX_PAIRS = 10;

/** The groups with the highest score of their environments. */
function bestGroups(groups: readonly GroupStatistics[]): ReadonlySet<string> {
  const value = ({ iqm, median }: GroupStatistics): number => iqm?.value ?? median?.value ?? -Infinity;
  const environments = Map.groupBy(groups, ({ environment }) => environment);
  return new Set(
    [...environments.values()].flatMap(
      (rivals) => rivals.toSorted((a, b) => value(b) - value(a))[0]?.id ?? [],
    ),
  );
}

/** For each pair of groups, how they differ, and whether the difference is significant. */
function PairwiseTable({ comparison: { groups, improvements: pairs } }: { comparison: Comparison }) {
  const [all, setAll] = useState(false);
  const byId = new Map(groups.map((group) => [group.id, group]));
  const best = bestGroups(groups);
  const withBest = pairs.filter(({ a, b }) => best.has(a) || best.has(b));
  const isShort = !all && pairs.length > MAX_PAIRS && withBest.length > 0;
  const improvements = isShort ? withBest : pairs;
  const scales = new Map(
    [...Map.groupBy(improvements, ({ a }) => byId.get(a)?.environment)].map(([environment, pairs]) => [
      environment,
      differenceScaleOf(pairs),
    ]),
  );
  return (
    <>
      <ScrollPanel label="Pairwise comparison" className={classes.scroll}>
        <table className="grid">
          <thead>
            <tr>
              <th>A</th>
              <th>B</th>
              <th className="right">P(A &gt; B)</th>
              <th>Difference A − B [95 % CI]</th>
              <th aria-hidden="true" />
              <th>Verdict</th>
            </tr>
          </thead>
          <tbody>
            {improvements.map((pair) => {
              const [from, to] = scales.get(byId.get(pair.a)?.environment) ?? [0, 0];
              return (
                <tr key={`${pair.a} ${pair.b}`}>
                  <td>{byId.get(pair.a)?.name}</td>
                  <td>{byId.get(pair.b)?.name}</td>
                  <td className="right num nowrap">{formatEstimate(pair.probability, percent)}</td>
                  <td className="num nowrap">{formatEstimate(pair.difference, formatScore)}</td>
                  <td style={{ width: '15%' }}>
                    <Interval
                      estimate={pair.difference}
                      from={from}
                      to={to}
                      mark={0}
                      colour="var(--accent)"
                    />
                  </td>
                  <td style={{ minWidth: 240 }}>{verdict(pair)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </ScrollPanel>
      {isShort && (
        <div className="row wrap">
          <span className="muted">Each config against the one with the highest score.</span>
          <Button variant="default" onClick={() => setAll(true)}>
            Show all {formatInteger(pairs.length)} pairs
          </Button>
        </div>
      )}
    </>
  );
}
