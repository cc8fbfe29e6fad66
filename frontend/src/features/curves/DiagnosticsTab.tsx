import { useMemo } from 'react';
import type { Panel } from '@/api/figures';
import type { RunDetail } from '@/api/runs';
import { Empty } from '@/components/feedback';
import classes from '@/components/chart/curves.module.css';
import { GorilaFigure } from './GorilaFigure';
import { MetricChart } from '@/components/chart/MetricChart';

const ALL_SOURCES = ['*'];

type Props = { run: RunDetail; panels: readonly Panel[] };

/** Metrics specific to the run's algorithm, drawn as in its paper. */
export function DiagnosticsTab({ run, panels }: Props) {
  const runs = useMemo(() => [run.id], [run.id]);
  if (panels.length === 0 && run.algorithm !== 'gorila_dqn') {
    return <Empty>No metrics specific to this algorithm have been reported.</Empty>;
  }
  return (
    <>
      {run.algorithm === 'gorila_dqn' && <GorilaFigure run={run} />}
      <div className={classes.grid}>
        {panels.map(({ id, title, metrics }) => (
          <MetricChart
            key={id}
            runs={runs}
            title={title}
            label={`${title} of ${run.name}`}
            fileName={`${run.name} ${title}`}
            id={id}
            metrics={metrics}
            source={ALL_SOURCES}
            figure={{ panel: id }}
          />
        ))}
      </div>
    </>
  );
}
