import { ActionIcon, Button, NativeSelect, SegmentedControl } from '@mantine/core';
import { IconStar, IconStarFilled } from '@tabler/icons-react';
import { useState, type ReactNode } from 'react';
import { type Comparison, type ComparisonRequest, type GroupStatistics, tableFile } from '@/api/comparisons';
import type { Run } from '@/api/runs';
import { useLineStyles } from '@/components/chart/lineStyles';
import type { Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import {
  differenceScaleOf,
  formatEstimate,
  formatP,
  Interval,
  scaleOf,
  verdict,
} from '@/components/Estimate';
import { ExportTable } from '@/components/ExportTable';
import { Empty, Loading, Problem } from '@/components/feedback';
import type { TermId } from '@/components/glossary';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Terms } from '@/components/Term';
import { Name } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import {
  DASH,
  formatCount,
  formatDuration,
  formatScore,
  formatInteger,
  plural,
  protocolLabel,
} from '@/lib/format';
import { stepsOf, stepsTitle } from '@/lib/run';
import curves from '@/components/chart/curves.module.css';
import classes from './compare.module.css';
import { Threshold } from './Threshold';
import { signed } from './Verdict';

const NO_STYLES: Styles = new Map();

const TERMS: readonly TermId[] = [
  ...(['config', 'seed', 'score', 'evaluation', 'iqm'] as const),
  ...(['confidence_interval', 'p_value', 'threshold'] as const),
];

export type StatisticsView = {
  score: Comparison['score'];
  at: Comparison['at'];
  threshold: number | undefined;
  protocol: string | undefined;
  /** The group with which the others of its environment are compared; the first if undefined. */
  baseline: string | undefined;
  pairs: 'all' | undefined;
};

type Props = {
  /** The compared runs. */
  runs: readonly Run[];
  /** The request of the comparison. */
  request: ComparisonRequest;
  comparison: Comparison | undefined;
  error: Error | null;
  onRetry: () => void;
  /** The styles of the groups, if the chart shows groups, each in its own colour. */
  styles: Styles | undefined;
  onStyle: (group: string, style: number) => void;
  view: StatisticsView;
  onView: (view: StatisticsView) => void;
  /** Receives runs that are to be compared too. */
  onAdd: (ids: readonly string[]) => void;
  /** Receives a run that is to be compared no more. */
  onLeaveOut: (id: string) => void;
  /** What follows the statistics, once their height is known. */
  below?: ReactNode;
};

/** Groups of seeds with intervals, one table per environment, and their pairwise comparison. */
export function Statistics(props: Props) {
  const {
    runs,
    request,
    comparison: data,
    error,
    onRetry,
    styles = NO_STYLES,
    onStyle,
    view,
    onView,
  } = props;
  const { onAdd, onLeaveOut, below } = props;
  // The protocol in the address may have no evaluations, or none yet.
  const protocols = [...new Set([...(data?.protocols ?? []), ...(view.protocol ? [view.protocol] : [])])];
  const environments = Map.groupBy((data?.groups ?? []).toSorted(byEnd), ({ environment }) => environment);
  return (
    <>
      <section id="statistics" className={classes.statistics} aria-label="Statistics">
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
          <SegmentedControl
            size="xs"
            aria-label="Compare with"
            value={view.pairs ?? 'baseline'}
            data={[
              { value: 'baseline', label: 'Against a baseline' },
              { value: 'all', label: 'All pairs' },
            ]}
            onChange={(pairs) => onView({ ...view, pairs: pairs === 'all' ? pairs : undefined })}
          />
          {data && <ExportTable files={tableFiles(request, data)} />}
          <Threshold
            value={view.threshold}
            onValue={(threshold) => {
              if (threshold !== view.threshold) onView({ ...view, threshold });
            }}
          />
        </header>
        {error && <Problem error={error} onRetry={onRetry} />}
        {!data && !error && <Loading label="Computing the statistics" lines={3} />}
        {[...environments].map(([environment, groups]) => (
          <GroupsTable
            key={environment}
            groups={groups}
            styles={styles}
            onStyle={onStyle}
            baselines={data?.baselines ?? []}
            onBaseline={(baseline) => onView({ ...view, baseline, pairs: undefined })}
            improvements={data?.improvements ?? []}
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
        {data && <Notes comparison={data} runs={runs} onAdd={onAdd} onLeaveOut={onLeaveOut} />}
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
            {data.n_comparisons > 1 &&
              `; p-values are corrected by Holm’s method for ${data.n_comparisons} comparisons, intervals are not`}
            . A group contains the runs that differ only in their seed, or also in their limits, unless these
            change how a learning rate is annealed; runs whose settings changed during training, or of another
            major version of MuJoCo, in which robots move otherwise, are groups of their own
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

/** The files of a comparison's tables. */
const tableFiles = (request: ComparisonRequest, { improvements }: Comparison) =>
  (['scores', ...(improvements.length > 0 ? (['differences'] as const) : [])] as const).flatMap((table) =>
    (['latex', 'csv'] as const).map((format) => ({
      label: `${table === 'scores' ? 'Scores' : 'Differences'}, ${format === 'latex' ? 'LaTeX, for booktabs' : 'CSV'}`,
      path: tableFile(request, table, format),
    })),
  );

const countedOf = ({ runs }: GroupStatistics) => runs.filter(({ counted }) => counted);

/** A group's runs without those in whose place another one counts. */
const samplesOf = ({ runs }: GroupStatistics) => runs.filter(({ left_out }) => left_out !== 'repeated');

function AddRuns({ ids, onAdd }: { ids: readonly string[]; onAdd: (ids: readonly string[]) => void }) {
  return (
    <Button size="compact-xs" variant="default" onClick={() => onAdd(ids)}>
      {ids.length > 1 ? 'Add them' : 'Add it'}
    </Button>
  );
}

/** What runs are not counted, and who sets the length. */
function Notes({
  comparison: { groups, lengths },
  runs,
  onAdd,
  onLeaveOut,
}: { comparison: Comparison } & Pick<Props, 'runs' | 'onAdd' | 'onLeaveOut'>) {
  const chosen = groups.filter(({ are_best }) => are_best);
  const further = groups.flatMap(({ others, are_best }) => (are_best ? [] : others));
  const counts = Map.groupBy(
    groups.flatMap(({ runs: own }) => own),
    ({ left_out }) => left_out,
  );
  const why = [
    [
      'repeated',
      'a run and its forks are one sample, and so are runs with the same config and seed if the method is deterministic',
    ],
    ['broke_off', 'a run that failed, was lost or was stopped before it came there'],
    [
      'early',
      'the score is early: that of the first, short episodes, since most agent steps are those of episodes that have not ended',
    ],
  ] as const;
  return (
    <>
      {why.map(([reason, because]) => {
        const n = counts.get(reason)?.length ?? 0;
        return n === 0 ? null : (
          <p key={reason} className="muted" role="note">
            {plural(n, 'run')} not counted: {because}.
          </p>
        );
      })}
      {lengths
        .filter(({ at_agent_steps: at, median_agent_steps: median }) => at < median / 2)
        .map(({ run, environment, at_agent_steps, median_agent_steps }) => (
          <p key={run} className="row wrap" role="note">
            {shortEnvironmentName(environment)} is compared at {formatCount(at_agent_steps)} because{' '}
            {runs.find(({ id }) => id === run)?.name} has come no further; half of the runs have come to{' '}
            {formatCount(median_agent_steps)}.
            <Button size="compact-xs" variant="default" onClick={() => onLeaveOut(run)}>
              Leave it out
            </Button>
          </p>
        ))}
      {chosen.map(({ id, name, runs: own, others }) => (
        <p key={id} className="row wrap" role="note">
          {own.length} of {plural(own.length + others.length, 'run')} of {name} are here, those with the
          highest scores: a verdict takes them for a sample.
          <AddRuns ids={others} onAdd={onAdd} />
        </p>
      ))}
      {further.length > 0 && (
        <p className="row wrap muted" role="note">
          {plural(further.length, 'further run')} of these configs {further.length > 1 ? 'are' : 'is'} not
          compared.
          <AddRuns ids={further} onAdd={onAdd} />
        </p>
      )}
    </>
  );
}

/** Configs with runs that broke off stand below: their scores are those of the survivors. */
const byEnd = (a: GroupStatistics, b: GroupStatistics): number =>
  Number(a.n_broken_off > 0) - Number(b.n_broken_off > 0);

type TableProps = {
  groups: readonly GroupStatistics[];
  styles: Styles;
  onStyle: (group: string, style: number) => void;
  baselines: readonly string[];
  onBaseline: (group: string) => void;
  improvements: Comparison['improvements'];
  threshold: number | null;
  /** Whether the scores are of evaluations, each under a protocol. */
  evaluated: boolean;
  environment?: string;
};

function GroupsTable({
  groups,
  styles,
  onStyle,
  baselines,
  onBaseline,
  improvements,
  threshold,
  evaluated,
  environment,
}: TableProps) {
  const [from, to] = scaleOf(groups);
  const baseline = groups.find(({ id }) => baselines.includes(id));
  const isCompared = baseline !== undefined && groups.length > 1;
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
            {isCompared && (
              <>
                <th>
                  Difference from <IconStarFilled size={10} aria-label="the baseline" /> [95 % CI]
                </th>
                <th className="right">p</th>
              </>
            )}
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
            const pair = improvements.find(
              ({ a, b }) => (a === group.id && b === baseline?.id) || (b === group.id && a === baseline?.id),
            );
            return (
              <tr key={group.id}>
                <td>
                  <span className={`row ${classes.groupName}`}>
                    {style !== undefined && (
                      <StylePicker name={group.name} style={style} onStyle={(to) => onStyle(group.id, to)} />
                    )}
                    {groups.length > 1 && (
                      <ActionIcon
                        size={20}
                        variant="subtle"
                        color="gray"
                        aria-label={`Compare with ${group.name}`}
                        aria-pressed={baselines.includes(group.id)}
                        title="Compare the others with this config"
                        onClick={() => onBaseline(group.id)}
                      >
                        {baselines.includes(group.id) ? <IconStarFilled size={12} /> : <IconStar size={12} />}
                      </ActionIcon>
                    )}
                    <Name name={group.name} />
                  </span>
                </td>
                <td className="right num">
                  {group.n === samplesOf(group).length ? group.n : `${group.n} of ${samplesOf(group).length}`}
                  {group.n_broken_off > 0 && (
                    <div className="nowrap muted">
                      {group.n_finished} of {samplesOf(group).length} finished
                    </div>
                  )}
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
                {isCompared && (
                  <>
                    <td className="num nowrap">
                      {group === baseline ? 'baseline' : pair ? signed(pair, group.id) : DASH}
                    </td>
                    <td className="right num nowrap">{pair ? formatP(pair.p_adjusted) : ''}</td>
                  </>
                )}
                {threshold !== null && (
                  <>
                    <td className="right num">
                      {group.n_reached} of {samplesOf(group).length}
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

/** For each pair of groups, how they differ, and whether the difference is significant. */
function PairwiseTable({
  comparison: { groups, improvements: pairs, best: leading, n_comparisons },
}: {
  comparison: Comparison;
}) {
  const [all, setAll] = useState(false);
  const byId = new Map(groups.map((group) => [group.id, group]));
  const best = new Set(leading.map(({ group }) => group));
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
                  <td>
                    <Name name={byId.get(pair.a)?.name ?? ''} />
                  </td>
                  <td>
                    <Name name={byId.get(pair.b)?.name ?? ''} />
                  </td>
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
                  <td style={{ minWidth: 240 }}>{verdict(pair, groups, n_comparisons)}</td>
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
