import { useComputedColorScheme } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef, type ReactNode } from 'react';
import { figureQuery } from '@/api/figures';
import { chartQuery, type XAxis } from '@/api/series';
import { Chart } from '@/components/chart/Chart';
import { ChartMenu } from '@/components/chart/ChartMenu';
import { fill, shownOfTotal, inPanel } from '@/components/chart/fill';
import { Empty, Problem } from '@/components/feedback';
import { useSettled } from '@/lib/settled';
import classes from './compare.module.css';

const METRIC = 'rollout/episode_return';
const HEIGHT = 440;
/** Beyond this many runs each is drawn of fewer points. */
const MANY = 10;

type Props = {
  runs: readonly string[];
  x: XAxis;
  smooth: number;
  grouped: boolean;
  /** What is left out of the picture; the rest does not change by it. */
  hidden: ReadonlySet<string>;
  log: boolean;
  onLog: (log: boolean) => void;
  controls: ReactNode;
};

/** The learning curves of several runs over one another, or of groups of seeds with their bands. */
export function CompareChart({ runs, x, smooth, grouped, hidden, log, onLog, controls }: Props) {
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const points = runs.length > MANY ? 250 : 1000;
  const chart = useQuery(chartQuery(client, { runs, metrics: [METRIC], x, smooth, points, grouped }));
  // A group that begins to report is a trace more.
  const groups = chart.data?.groups ?? [];
  const version = groups.map(({ id }) => id).join(' ');
  const figure = useQuery(figureQuery({ runs, x, smooth, points, theme: scheme, grouped }, version));

  const picture = useMemo(() => {
    const view = `${x} ${grouped} ${log}`;
    if (!figure.data || !chart.data) return { data: [], layout: {}, view };
    const data = fill(figure.data, chart.data).filter((trace) => {
      const { meta } = trace as { meta?: { run?: string } };
      return !hidden.has(meta?.run ?? '');
    });
    const layout = inPanel(figure.data.layout, log);
    // A run is hidden by its chip, and with it its evaluations.
    const still = { itemclick: false, itemdoubleclick: false } as const;
    return { data, layout: grouped ? layout : { ...layout, legend: { ...layout.legend, ...still } }, view };
  }, [figure.data, chart.data, x, grouped, hidden, log]);
  const shown = useSettled(picture, !chart.isPlaceholderData && !figure.isPlaceholderData);

  const error = chart.error ?? figure.error;
  const curves = chart.data?.series ?? [];
  const band = groups.find(({ runs: seeds }) => seeds.length > 1)?.interval;
  // What is still the answer to the question before says nothing of this one.
  const empty = chart.isSuccess && !chart.isPlaceholderData && (grouped ? groups : curves).length === 0;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Learning curves">
      <header className={classes.head}>
        <h2 className="section-title">Learning curves</h2>
        <span className="muted" role="status" aria-label="Points drawn">
          {curves.length > 0 && shownOfTotal(curves, log)}
          {groups.length > 0 && `${shownOfTotal(groups, log)}${band ? `; band: ${band}` : ''}`}
        </span>
        <span className="grow" />
        {controls}
        <ChartMenu element={element} curves={curves} x={x} name="comparison" log={log} onLog={onLog} />
      </header>
      {error ? (
        <Problem error={error} onRetry={() => void Promise.all([chart.refetch(), figure.refetch()])} />
      ) : empty ? (
        <div style={{ minHeight: HEIGHT, display: 'grid', placeItems: 'center' }}>
          <Empty>None of these runs has finished an episode yet.</Empty>
        </div>
      ) : figure.data && chart.data ? (
        <Chart
          label="Learning curves of the compared runs"
          data={shown.data}
          layout={shown.layout}
          height={HEIGHT}
          view={shown.view}
          onReady={(ready) => (element.current = ready)}
        />
      ) : (
        <div style={{ height: HEIGHT }} role="status" aria-label="Loading the curves…" />
      )}
    </section>
  );
}
