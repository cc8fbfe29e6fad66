import { useComputedColorScheme } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef } from 'react';
import { figureQuery } from '@/api/figures';
import { evaluationsQuery } from '@/api/runParts';
import type { Run } from '@/api/runs';
import { chartQuery, type XAxis } from '@/api/series';
import { Chart } from '@/components/chart/Chart';
import { CurveControls } from '@/components/chart/CurveControls';
import { Empty, Problem } from '@/components/feedback';
import { useSettled } from '@/lib/settled';
import { hasEnded } from '@/lib/states';
import { ChartMenu } from '@/components/chart/ChartMenu';
import classes from './curves.module.css';
import { fill, shownOfTotal, inPanel } from '@/components/chart/fill';

const METRIC = 'rollout/episode_return';
const HEIGHT = 400;
const POINTS = 1000;
const MARKS_EVERY_S = 20;

type Props = {
  run: Run;
  x: XAxis;
  smooth: number;
  log: boolean;
  onLog: (log: boolean) => void;
  onX: (x: XAxis) => void;
  onSmooth: (smooth: number) => void;
};

/** Evaluations, checkpoints and restarts do not come with the series: they are looked for now and then. */
const versionOf = (run: Run, evaluated: number): string =>
  [run.state, run.attempt, evaluated, Math.floor((run.wall_time_s ?? 0) / MARKS_EVERY_S)].join(' ');

/** Is it learning? Returns as they come in, smoothed, with the evaluations and the levels others reached. */
export function LearningCurve({ run, x, smooth, log, onLog, onX, onSmooth }: Props) {
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const chart = useQuery(
    chartQuery(client, { runs: [run.id], metrics: [METRIC], x, smooth, points: POINTS }),
  );
  const evaluations = useQuery(evaluationsQuery(run.id));
  const evaluated = evaluations.data?.filter(({ mean_return }) => mean_return !== null).length ?? 0;
  const figure = useQuery(
    figureQuery({ runs: [run.id], x, smooth, points: POINTS, theme: scheme }, versionOf(run, evaluated)),
  );
  const curve = chart.data?.series.find(({ metric, source }) => metric === METRIC && source === '');
  const picture = useMemo(
    () => ({
      data: figure.data && chart.data ? fill(figure.data, chart.data) : [],
      layout: inPanel(figure.data?.layout, log),
      view: `${run.id} ${x} ${log}`,
    }),
    [figure.data, chart.data, run.id, x, log],
  );
  const shown = useSettled(picture, !chart.isPlaceholderData && !figure.isPlaceholderData);

  const error = chart.error ?? figure.error;
  const empty = chart.isSuccess && !chart.isPlaceholderData && !curve;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Learning curve">
      <header className={classes.head}>
        <h2 className="section-title">Learning curve</h2>
        <span className="muted" role="status" aria-label="Points drawn">
          {curve ? shownOfTotal([curve], log) : ''}
        </span>
        <span className="grow" />
        <CurveControls x={x} smooth={smooth} onX={onX} onSmooth={onSmooth} />
        <ChartMenu
          element={element}
          curves={curve ? [curve] : []}
          x={x}
          name={`${run.name} learning curve`}
          log={log}
          onLog={onLog}
        />
      </header>
      {error ? (
        <Problem error={error} onRetry={() => void Promise.all([chart.refetch(), figure.refetch()])} />
      ) : empty ? (
        <div style={{ minHeight: HEIGHT }} className={classes.empty}>
          <Empty>
            {hasEnded(run.state)
              ? 'No episode ended before the run did.'
              : 'No episode has ended yet; the first point appears when one does.'}
          </Empty>
        </div>
      ) : figure.data && chart.isSuccess ? (
        <Chart
          label={`Learning curve of ${run.name}`}
          data={shown.data}
          layout={shown.layout}
          height={HEIGHT}
          view={shown.view}
          onReady={(ready) => (element.current = ready)}
        />
      ) : (
        <div style={{ height: HEIGHT }} role="status" aria-label="Loading the learning curve…" />
      )}
    </section>
  );
}
