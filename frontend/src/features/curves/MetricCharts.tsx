import { useComputedColorScheme } from '@mantine/core';
import { useInViewport } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef, useState } from 'react';
import { figureQuery } from '@/api/figures';
import type { Run } from '@/api/runs';
import { chartQuery, seriesNamesQuery, type XAxis } from '@/api/series';
import { Chart } from '@/components/chart/Chart';
import { Empty, Loading, Problem } from '@/components/feedback';
import { groupBy } from '@/lib/group';
import { useSettled } from '@/lib/settled';
import { hasEnded } from '@/lib/states';
import { ChartMenu } from '@/components/chart/ChartMenu';
import classes from './curves.module.css';
import { fill, shownOfTotal, inPanel } from '@/components/chart/fill';

const HEIGHT = 200;
const POINTS = 500;

type Props = { run: Run; x: XAxis; smooth: number };

/** Every metric of a run, in sections by the part of its name before the slash. */
export function MetricCharts({ run, x, smooth }: Props) {
  const { data, error, refetch } = useQuery(seriesNamesQuery(run.id));
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the metrics" />;
  const metrics = [...new Set(data.items.map(({ metric }) => metric))].sort();
  if (metrics.length === 0)
    return (
      <Empty>
        {hasEnded(run.state)
          ? 'The run ended before it reported anything.'
          : 'No metric yet; the engine reports some seconds after it starts.'}
      </Empty>
    );
  const sections = groupBy(metrics, (metric) => metric.split('/')[0] ?? metric);
  return (
    <div className={classes.sections}>
      {[...sections].map(([section, names]) => (
        <section key={section} aria-label={`Metrics of ${section}`}>
          <h3 className="section-title" style={{ marginBottom: 8 }}>
            {section}
          </h3>
          <div className={classes.grid}>
            {names.map((metric) => (
              // An evaluation is a mean already.
              <MetricChart
                key={metric}
                run={run}
                metric={metric}
                x={x}
                smooth={section === 'eval' ? 0 : smooth}
              />
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

/** One metric; drawn, and kept up to date, only while it can be seen. */
function MetricChart({ run, metric, x, smooth }: Props & { metric: string }) {
  const { ref, inViewport } = useInViewport<HTMLDivElement>();
  return (
    <div ref={ref} className={`panel ${classes.small}`}>
      {inViewport ? (
        <LiveChart run={run} metric={metric} x={x} smooth={smooth} />
      ) : (
        <div style={{ height: HEIGHT + 28 }} />
      )}
    </div>
  );
}

function LiveChart({ run, metric, x, smooth }: Props & { metric: string }) {
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const [log, setLog] = useState(false);
  const { data, error, isPlaceholderData, refetch } = useQuery(
    chartQuery(client, { runs: [run.id], metrics: [metric], x, smooth, source: ['*'], points: POINTS }),
  );
  const figure = useQuery(figureQuery({ runs: [run.id], metric, x, smooth, points: POINTS, theme: scheme }));
  const picture = useMemo(
    () => ({
      data: figure.data && data ? fill(figure.data, data) : [],
      layout: { ...inPanel(figure.data?.layout, log), showlegend: (data?.series.length ?? 0) > 1 },
      view: `${run.id} ${metric} ${x} ${log}`,
    }),
    [figure.data, data, run.id, metric, x, log],
  );
  const shown = useSettled(picture, !isPlaceholderData && !figure.isPlaceholderData);
  const problem = error ?? figure.error;
  if (problem)
    return <Problem error={problem} onRetry={() => void Promise.all([refetch(), figure.refetch()])} />;
  return (
    <>
      <header className="row">
        <span className="num grow ellipsis" title={metric}>
          {metric}
        </span>
        <span className="muted">{data ? shownOfTotal(data.series) : ''}</span>
        <ChartMenu
          element={element}
          curves={data?.series ?? []}
          x={x}
          name={`${run.name} ${metric}`.replaceAll('/', ' ')}
          log={log}
          onLog={setLog}
        />
      </header>
      {data && figure.data ? (
        <Chart
          label={`${metric} of ${run.name}`}
          data={shown.data}
          layout={shown.layout}
          height={HEIGHT}
          view={shown.view}
          onReady={(ready) => (element.current = ready)}
        />
      ) : (
        <div style={{ height: HEIGHT }} role="status" aria-label={`Loading ${metric}…`} />
      )}
    </>
  );
}
