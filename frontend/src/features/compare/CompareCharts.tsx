import { Autocomplete, Button, Checkbox, Menu, NativeSelect } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { MARKS_INTERVAL_S } from '@/api/figures';
import { marksQuery } from '@/api/runResources';
import { CENTRES, INTERVALS, metricsQuery, possible, type Spread } from '@/api/series';
import { CurveControls } from '@/components/chart/CurveControls';
import curves from '@/components/chart/curves.module.css';
import { metricOf, type Panel } from '@/components/run/panels';
import { Term } from '@/components/Term';
import classes from './compare.module.css';
import type { PanelPage } from './panels/kinds';
import { PanelEditor } from './panels/PanelEditor';

const KindItems = lazy(async () => ({ default: (await import('./panels/parts')).KindItems }));

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
  panels: readonly Panel[];
  /** Receives the panels, and the tab to open: empty for the first; without one, the open one stays. */
  onPanels: (panels: readonly Panel[], tab?: string) => void;
  /** The open tab of panels; undefined for the first, which has no name. */
  tab: string | undefined;
  onTab: (tab: string | undefined) => void;
  /** What panels show that are more than a metric. */
  page: PanelPage;
  onSpread: (spread: Spread) => void;
  /** Hidden runs and groups; hiding one does not change the others. */
  hidden: ReadonlySet<string>;
};

/** Panels of several runs, or of groups of seeds with their bands, the charts among which have a common x axis. */
export function CompareCharts(props: Props) {
  const { runs, scoredBy, trainedS, environments, panels, onPanels, tab, onTab, page, onSpread, hidden } =
    props;
  const { grouped, spread } = page;
  const { data: recorded } = useQuery(metricsQuery(runs));
  const [added, setAdded] = useState<string>();
  const shown = panels.flatMap((panel) => (panel.tab === tab ? (metricOf(panel) ?? []) : []));
  const options = recorded?.map(({ metric }) => metric).filter((metric) => !shown.includes(metric)) ?? [];
  // Changes of state, such as restarts, refetch the marks query too.
  const version = useQueries({ queries: runs.map(marksQuery), combine: versionOf });
  const period = Math.floor(trainedS / MARKS_INTERVAL_S);
  const marks = useMemo(() => ({ version, period }), [version, period]);
  const learningCurve = useMemo(() => ({ scoredBy }), [scoredBy]);
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
          onAdd={(metric) =>
            onPanels([...panels, { kind: 'lines', metrics: [metric], ...(tab === undefined ? {} : { tab }) }])
          }
        />
        <Menu position="bottom-start" withinPortal>
          <Menu.Target>
            <Button variant="default">Add panel</Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Suspense fallback={<Menu.Label>Loading…</Menu.Label>}>
              <KindItems onKind={setAdded} />
            </Suspense>
          </Menu.Dropdown>
        </Menu>
        {grouped && <SpreadControls spread={spread} onSpread={onSpread} />}
        <span className="grow" />
        <CurveControls />
      </div>
      <PanelEditor
        page={page}
        panels={panels}
        onPanels={onPanels}
        tab={tab}
        onTab={onTab}
        added={added}
        onAdded={() => setAdded(undefined)}
        runs={runs}
        environments={environments}
        learningCurve={learningCurve}
        spread={grouped ? spread : undefined}
        marks={marks}
        hidden={hidden}
      />
    </>
  );
}

type SpreadProps = { spread: Spread; onSpread: (spread: Spread) => void };

/** What is drawn of several seeds. */
function SpreadControls({ spread, onSpread }: SpreadProps) {
  return (
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
