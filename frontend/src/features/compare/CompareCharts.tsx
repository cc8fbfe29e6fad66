import { Autocomplete, Checkbox, Menu, NativeSelect } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import { MARKS_INTERVAL_S } from '@/api/figures';
import { marksQuery } from '@/api/runResources';
import { CENTRES, INTERVALS, metricsQuery, possible, type Spread } from '@/api/series';
import { CurveControls } from '@/components/chart/CurveControls';
import { Empty } from '@/components/feedback';
import curves from '@/components/chart/curves.module.css';
import { EPISODE_RETURN } from '@/api/series';
import { MetricChart } from '@/components/chart/MetricChart';
import { placementOf } from '@/components/chart/PanelHandles';
import { LARGE, type PanelSize, sameSize, SMALL } from '@/components/chart/panelSize';
import { Term } from '@/components/Term';
import { shortEnvironmentName } from '@/lib/environments';
import classes from './compare.module.css';

/** With several environments, two panels of a metric share a line. */
const HALF: PanelSize = { columns: 6, height: 320 };

const defaultSize = (metric: string, areMixed: boolean): PanelSize =>
  areMixed ? HALF : metric === EPISODE_RETURN ? LARGE : SMALL;

const LEARNING_CURVES = {
  title: 'Learning curves',
  main: true,
  label: 'Learning curves of the compared runs',
  fileName: 'comparison',
  metrics: [EPISODE_RETURN],
  empty: <Empty>None of these runs has finished an episode yet.</Empty>,
};

const panelOf = (metric: string) => ({
  title: metric,
  monospace: true,
  label: `${metric} of the compared runs`,
  fileName: `comparison ${metric}`.replaceAll('/', ' '),
  metrics: [metric],
  figure: { metric },
  empty: <Empty>None of these runs has reported this metric yet.</Empty>,
});

const CENTRE_LABELS: Record<Spread['centre'], string> = {
  median: 'Median',
  mean: 'Mean',
  iqm: 'Interquartile mean',
};
const INTERVAL_LABELS: Record<Spread['interval'], string> = {
  se: 'SE',
  sd: 'SD',
  ci95: '95 % CI',
  bootstrap: 'Bootstrap, 95 %',
  min_max: 'Min–max',
};

/** One version of the marks of several runs. */
const versionOf = (marks: readonly { data: number | undefined }[]): string =>
  marks.map(({ data }) => data).join(' ');

/** Number of metrics offered together. */
const MAX_OPTIONS = 50;

type Props = {
  runs: readonly string[];
  /** The runs' return metrics: with other ones, no curve of returns stays. */
  scoredBy: string;
  /** The training time of those that have not ended, summed. */
  trainedS: number;
  /** The runs' environments. Their returns have no common scale: each environment has a panel of each metric. */
  environments: readonly string[];
  /** The metrics with a panel each. */
  metrics: readonly string[];
  onMetrics: (metrics: readonly string[]) => void;
  /** Sizes of panels, where they are not the default. */
  sizes: ReadonlyMap<string, PanelSize>;
  onSizes: (sizes: ReadonlyMap<string, PanelSize>) => void;
  grouped: boolean;
  spread: Spread;
  onSpread: (spread: Spread) => void;
  /** Hidden runs and groups; hiding one does not change the others. */
  hidden: ReadonlySet<string>;
};

/** Any metrics of several runs, or of groups of seeds with their bands, in panels with a common x axis. */
export function CompareCharts({
  runs,
  scoredBy,
  trainedS,
  environments,
  metrics,
  onMetrics,
  sizes,
  onSizes,
  grouped,
  spread,
  onSpread,
  hidden,
}: Props) {
  const { data: recorded } = useQuery(metricsQuery(runs));
  const options = recorded?.map(({ metric }) => metric).filter((metric) => !metrics.includes(metric)) ?? [];
  const drawn = grouped ? spread : undefined;
  // Changes of state, such as restarts, refetch the marks query too.
  const version = useQueries({ queries: runs.map(marksQuery), combine: versionOf });
  const period = Math.floor(trainedS / MARKS_INTERVAL_S);
  const marks = useMemo(() => ({ version, period }), [version, period]);
  const learningCurves = useMemo(() => ({ ...LEARNING_CURVES, figure: { scoredBy } }), [scoredBy]);
  const areMixed = environments.length > 1;
  const sizeOf = (metric: string): PanelSize => sizes.get(metric) ?? defaultSize(metric, areMixed);
  const resize = (metric: string, size: PanelSize): void => {
    const next = new Map(sizes).set(metric, size);
    if (sameSize(size, defaultSize(metric, areMixed))) next.delete(metric);
    onSizes(next);
  };
  return (
    <>
      <div
        className={`panel ${curves.head} ${classes.toolbar}`}
        role="group"
        aria-label="Charts"
        tabIndex={-1}
      >
        <AddMetric
          recorded={recorded}
          options={options}
          onAdd={(metric) => onMetrics([...metrics, metric])}
        />
        {grouped && (
          <>
            <NativeSelect
              aria-label="Line"
              value={spread.centre}
              data={CENTRES.map((value) => ({ value, label: CENTRE_LABELS[value] }))}
              onChange={({ currentTarget }) => {
                const centre = CENTRES.find((known) => known === currentTarget.value) ?? spread.centre;
                onSpread(possible({ ...spread, centre }));
              }}
            />
            <NativeSelect
              aria-label="Band"
              value={spread.interval}
              data={INTERVALS.map((value) => ({
                value,
                label: INTERVAL_LABELS[value],
                // A median has no standard error, and has an exact interval in place of a bootstrap.
                disabled: possible({ ...spread, interval: value }).interval !== value,
              }))}
              onChange={({ currentTarget }) => {
                const interval = INTERVALS.find((known) => known === currentTarget.value) ?? spread.interval;
                onSpread({ ...spread, interval });
              }}
            />
            <Term id="band" icon>
              What the band shows
            </Term>
            <Checkbox
              size="xs"
              label="Single seeds"
              checked={spread.seeds}
              onChange={({ currentTarget }) => onSpread({ ...spread, seeds: currentTarget.checked })}
            />
          </>
        )}
        <span className="grow" />
        <CurveControls />
      </div>
      {metrics.length > 0 && (
        <div className={curves.placed}>
          <div>
            {metrics.flatMap((metric) =>
              (areMixed ? environments : [undefined]).map((environment) => {
                const panel = metric === EPISODE_RETURN ? learningCurves : panelOf(metric);
                const name = environment && shortEnvironmentName(environment);
                const of = (text: string): string => (name ? `${text} · ${name}` : text);
                return (
                  <MetricChart
                    key={`${metric} ${environment ?? ''}`}
                    {...panel}
                    runs={runs}
                    environment={environment}
                    title={of(panel.title)}
                    label={of(panel.label)}
                    fileName={name ? `${panel.fileName} ${name}` : panel.fileName}
                    id={metric}
                    // Curves of groups, and those of other metrics, have no marks.
                    marks={metric === EPISODE_RETURN && !grouped ? marks : undefined}
                    spread={drawn}
                    hidden={hidden}
                    placement={placementOf(metrics, metric, sizeOf(metric), onMetrics, (size) =>
                      resize(metric, size),
                    )}
                    menu={
                      <Menu.Item onClick={() => onMetrics(metrics.filter((other) => other !== metric))}>
                        Remove
                      </Menu.Item>
                    }
                  />
                );
              }),
            )}
          </div>
        </div>
      )}
    </>
  );
}

type AddProps = {
  recorded: readonly { metric: string }[] | undefined;
  /** Those without a panel. */
  options: readonly string[];
  onAdd: (metric: string) => void;
};

/** A search for a metric; choosing one adds its panel, Enter the first that matches. */
function AddMetric({ recorded, options, onAdd }: AddProps) {
  const [typed, setTyped] = useState('');
  const added = useRef(false);
  const add = (metric: string): void => {
    added.current = true;
    onAdd(metric);
  };
  /** After an option is chosen, the field reports it as its text. */
  const type = (text: string): void => {
    setTyped(added.current ? '' : text);
    added.current = false;
  };
  const wanted = typed.trim().toLowerCase();
  const none = wanted !== '' && recorded?.every(({ metric }) => !metric.toLowerCase().includes(wanted));
  return (
    <Autocomplete
      size="xs"
      type="search"
      className={classes.metrics ?? ''}
      aria-label="Add a metric"
      placeholder="Add a metric"
      data={[...options]}
      limit={MAX_OPTIONS}
      selectFirstOptionOnChange
      value={typed}
      error={none && 'None of these runs has such a metric.'}
      onChange={type}
      onOptionSubmit={add}
    />
  );
}
