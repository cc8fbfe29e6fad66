import { Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState, type ReactNode } from 'react';
import { MARKS_INTERVAL_S } from '@/api/figures';
import { marksQuery } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { EPISODE_RETURN, seriesNamesQuery } from '@/api/series';
import { CurveControls } from '@/components/chart/CurveControls';
import { Empty } from '@/components/feedback';
import { hasEnded, isExternal } from '@/lib/run';
import { ChartPanel } from '@/components/chart/ChartPanel';
import classes from '@/components/chart/curves.module.css';
import { CURVE_POINTS } from './keyMetrics';

const METRICS = [EPISODE_RETURN];
/** With its header, at most 320 px, so that the tabs below are in view. */
const HEIGHT = 264;

type Props = {
  run: Run;
  /** What stands under the chart, on its horizontal axis. */
  below?: ((chart: HTMLElement | null) => ReactNode) | undefined;
  /** Opens the notes at steps of the run. */
  onNotes: () => void;
};

/** The run's returns, raw and smoothed, with its evaluations and published scores. */
export function LearningCurve({ run, below, onNotes }: Props) {
  const [section, setSection] = useState<HTMLElement | null>(null);
  const runs = useMemo(() => [run.id], [run.id]);
  const { data: changed } = useQuery(marksQuery(run.id));
  const version = [run.state, run.attempt, changed].join(' ');
  const period = Math.floor((run.wall_time_s ?? 0) / MARKS_INTERVAL_S);
  const marks = useMemo(() => ({ version, period }), [version, period]);
  const figure = useMemo(() => ({ scoredBy: run.return_metric }), [run.return_metric]);
  const names = useQuery({
    ...seriesNamesQuery(run.id),
    enabled: isExternal(run) && run.return_metric === null,
  });
  const candidates = names.data?.return_candidates ?? [];
  return (
    <section ref={setSection} className={`panel ${classes.panel}`} aria-label="Learning curve">
      <ChartPanel
        runs={runs}
        title="Learning curve"
        main
        label={`Learning curve of ${run.name}`}
        fileName={`${run.name} learning curve`}
        id={EPISODE_RETURN}
        metrics={METRICS}
        figure={figure}
        marks={marks}
        height={HEIGHT}
        points={CURVE_POINTS}
        controls={<CurveControls />}
        menu={<Menu.Item onClick={onNotes}>Notes at steps…</Menu.Item>}
        empty={
          <Empty>
            {candidates.length > 0
              ? `None of the metrics is known to be the return. It could be ${candidates.slice(0, 3).join(', ')}: choose it above as the return metric.`
              : hasEnded(run.state)
                ? 'The run ended before its first training episode.'
                : 'No episode has ended yet. The first point appears when one does.'}
          </Empty>
        }
      />
      {below?.(section)}
    </section>
  );
}
