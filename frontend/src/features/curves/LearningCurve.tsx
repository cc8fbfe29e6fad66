import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { evaluationsQuery } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { EPISODE_RETURN } from '@/api/series';
import { CurveControls } from '@/components/chart/CurveControls';
import { Empty } from '@/components/feedback';
import { hasEnded } from '@/lib/run';
import { ChartPanel } from '@/components/chart/ChartPanel';
import classes from '@/components/chart/curves.module.css';

const METRICS = [EPISODE_RETURN];
const LEARNING_CURVE = {};
/** With its header, at most 320 px, so that the tabs below are in view. */
const HEIGHT = 264;
const POINTS = 1000;
/** How often, in training time, the figure is refetched for new checkpoints and restarts. */
const MARKS_INTERVAL_S = 20;

/** Changes when the figure may have new marks. */
const versionOf = (run: Run, nEvaluations: number): string =>
  [run.state, run.attempt, nEvaluations, Math.floor((run.wall_time_s ?? 0) / MARKS_INTERVAL_S)].join(' ');

/** The run's returns, raw and smoothed, with its evaluations and published scores. */
export function LearningCurve({ run }: { run: Run }) {
  const runs = useMemo(() => [run.id], [run.id]);
  const evaluations = useQuery(evaluationsQuery(run.id));
  const nEvaluations = evaluations.data?.filter(({ mean_return }) => mean_return !== null).length ?? 0;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Learning curve">
      <ChartPanel
        runs={runs}
        title="Learning curve"
        main
        label={`Learning curve of ${run.name}`}
        fileName={`${run.name} learning curve`}
        id={EPISODE_RETURN}
        metrics={METRICS}
        figure={LEARNING_CURVE}
        version={versionOf(run, nEvaluations)}
        height={HEIGHT}
        points={POINTS}
        controls={<CurveControls />}
        empty={
          <Empty>
            {hasEnded(run.state)
              ? 'The run ended before its first training episode.'
              : 'No episode has ended yet. The first point appears when one does.'}
          </Empty>
        }
      />
    </section>
  );
}
