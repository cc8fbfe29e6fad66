import { useComputedColorScheme } from '@mantine/core';
import { useIntersection } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef, useState, type ReactNode } from 'react';
import { figureQuery } from '@/api/figures';
import type { Run } from '@/api/runs';
import { chartQuery, type XAxis } from '@/api/series';
import { Chart } from '@/components/chart/Chart';
import { ChartMenu } from '@/components/chart/ChartMenu';
import { fill, flatRange, inPanel, shownOfTotal, withoutEmptyShares } from '@/components/chart/fill';
import { Problem } from '@/components/feedback';
import { useSettled } from '@/lib/settled';
import classes from './curves.module.css';

/** Room for a legend of eight beside the plot. */
const HEIGHT = 228;
const LARGE_HEIGHT = 440;
const POINTS = 500;

type Props = {
  run: Run;
  /** What it says above it, and whether that is a metric's own name. */
  title: string;
  named?: boolean;
  metrics: readonly string[];
  /** How the service calls the figure. */
  figure: { metric: string } | { panel: string };
  x: XAxis;
  smooth: number;
  large?: boolean;
  /** Further items of its menu. */
  menu?: ReactNode;
};

/** What is about to be scrolled into view is drawn already. */
const NEARLY_SEEN = { rootMargin: '300px' };

/** Some metrics of a run in one chart; drawn, and kept up to date, only while it can be seen, or nearly. */
export function MetricChart(props: Props) {
  const { ref, entry } = useIntersection<HTMLDivElement>(NEARLY_SEEN);
  const height = props.large ? LARGE_HEIGHT : HEIGHT;
  return (
    <div ref={ref} className={`panel ${classes.small}`} data-large={props.large ? true : undefined}>
      {entry?.isIntersecting ? (
        <LiveChart {...props} height={height} />
      ) : (
        <div style={{ height: height + 28 }} />
      )}
    </div>
  );
}

function LiveChart({
  run,
  title,
  named,
  metrics,
  figure: of,
  x,
  smooth,
  menu,
  height,
}: Props & { height: number }) {
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const [log, setLog] = useState(false);
  const { data, error, isPlaceholderData, refetch } = useQuery(
    chartQuery(client, { runs: [run.id], metrics, x, smooth, source: ['*'], points: POINTS }),
  );
  // A part of the run that begins to report is a trace more.
  const parts = data?.series.map(({ metric, source }) => `${metric} ${source}`).join(',') ?? '';
  const figure = useQuery(
    figureQuery({ runs: [run.id], ...of, x, smooth, points: POINTS, theme: scheme }, parts),
  );
  const picture = useMemo(() => {
    const traces = figure.data && data ? withoutEmptyShares(fill(figure.data, data)) : [];
    const layout = inPanel(figure.data?.layout, log);
    const range = log ? undefined : flatRange(traces);
    return {
      data: traces,
      layout: {
        ...layout,
        showlegend: (data?.series.length ?? 0) > 1,
        ...(range && { yaxis: { ...layout.yaxis, range, autorange: false as const } }),
      },
      view: `${run.id} ${title} ${x} ${log}`,
    };
  }, [figure.data, data, run.id, title, x, log]);
  const shown = useSettled(picture, !isPlaceholderData && !figure.isPlaceholderData);
  const problem = error ?? figure.error;
  if (problem)
    return <Problem error={problem} onRetry={() => void Promise.all([refetch(), figure.refetch()])} />;
  return (
    <>
      <header className="row">
        <span className={`grow ellipsis ${named ? 'num' : 'section-title'}`} title={title}>
          {title}
        </span>
        <span className="muted nowrap">{data ? shownOfTotal(data.series, log) : ''}</span>
        <ChartMenu
          element={element}
          curves={data?.series ?? []}
          x={x}
          name={`${run.name} ${title}`.replaceAll('/', ' ')}
          log={log}
          onLog={setLog}
        >
          {menu}
        </ChartMenu>
      </header>
      {data && figure.data ? (
        <Chart
          label={`${title} of ${run.name}`}
          data={shown.data}
          layout={shown.layout}
          height={height}
          view={shown.view}
          onReady={(ready) => (element.current = ready)}
        />
      ) : (
        <div style={{ height }} role="status" aria-label={`Loading ${title}…`} />
      )}
    </>
  );
}
