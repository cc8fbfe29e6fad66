import { useComputedColorScheme } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Data, PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef, type ReactNode } from 'react';
import { figureQuery } from '@/api/figures';
import { chartQuery, type GroupCurve, type XAxis } from '@/api/series';
import { Chart } from '@/components/chart/Chart';
import { ChartMenu } from '@/components/chart/ChartMenu';
import { groupColours, type Scheme } from '@/components/chart/colours';
import { fill, shownOfTotal, withoutTitle } from '@/components/chart/fill';
import { Empty, Problem } from '@/components/feedback';
import { useSettled } from '@/lib/settled';
import classes from './compare.module.css';
import { groupTraces } from './groupTraces';

const METRIC = 'rollout/episode_return';
const HEIGHT = 440;
/** Beyond this many runs only the lines themselves are drawn, of fewer points. */
const MANY = 10;

type Props = {
  runs: readonly string[];
  x: XAxis;
  smooth: number;
  grouped: boolean;
  /** What is left out of the picture; the rest does not change by it. */
  hidden: ReadonlySet<string>;
  controls: ReactNode;
};

function drawGroups(groups: readonly GroupCurve[], scheme: Scheme): Data[] {
  const colours = groupColours(
    groups.map(({ id }) => id),
    scheme,
  );
  return groups.flatMap((group) => groupTraces(group, colours.get(group.id) ?? '#888888'));
}

/** The learning curves of several runs over one another, or of groups of seeds with their bands. */
export function CompareChart({ runs, x, smooth, grouped, hidden, controls }: Props) {
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const many = runs.length > MANY;
  const points = many ? 250 : 1000;
  const chart = useQuery(chartQuery(client, { runs, metrics: [METRIC], x, smooth, points, grouped }));
  const figure = useQuery(figureQuery({ runs, x, smooth, points, theme: scheme }));

  const picture = useMemo(() => {
    const view = `${x} ${grouped}`;
    if (!figure.data || !chart.data) return { data: [], layout: {}, view };
    const data = grouped
      ? drawGroups(chart.data.groups, scheme)
      : fill(figure.data, chart.data).filter((trace) => {
          const { meta } = trace as { meta?: { run?: string; y?: string } };
          const edge = meta?.y === 'min' || meta?.y === 'max';
          return !(many && edge) && !hidden.has(meta?.run ?? '');
        });
    return { data, layout: withoutTitle(figure.data.layout), view };
  }, [figure.data, chart.data, x, grouped, many, hidden, scheme]);
  const shown = useSettled(picture, !chart.isPlaceholderData && !figure.isPlaceholderData);

  const error = chart.error ?? figure.error;
  const curves = chart.data?.series ?? [];
  // What is still the answer to the question before says nothing of this one.
  const empty =
    chart.isSuccess &&
    !chart.isPlaceholderData &&
    (grouped ? chart.data.groups : chart.data.series).length === 0;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Learning curves">
      <header className={classes.head}>
        <h2 className="section-title">Learning curves</h2>
        <span className="muted" role="status" aria-label="Points drawn">
          {curves.length > 0 && shownOfTotal(curves)}
        </span>
        <span className="grow" />
        {controls}
        <ChartMenu element={element} curves={curves} x={x} name="comparison" />
      </header>
      {error ? (
        <Problem error={error} onRetry={() => void Promise.all([chart.refetch(), figure.refetch()])} />
      ) : empty ? (
        <Empty>None of these runs has finished an episode yet.</Empty>
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
