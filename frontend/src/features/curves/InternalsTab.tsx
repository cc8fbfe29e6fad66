import type { Panel } from '@/api/figures';
import type { RunDetail } from '@/api/runs';
import type { XAxis } from '@/api/series';
import { Empty } from '@/components/feedback';
import classes from './curves.module.css';
import { GorilaFigure } from './GorilaFigure';
import { MetricChart } from './MetricChart';

type Props = { run: RunDetail; panels: readonly Panel[]; x: XAxis; smooth: number };

/** What the run's method is made of, drawn as its paper draws it. */
export function InternalsTab({ run, panels, x, smooth }: Props) {
  if (panels.length === 0 && run.algorithm !== 'gorila_dqn') {
    return <Empty>Nothing that is particular to its method has been reported.</Empty>;
  }
  return (
    <>
      {run.algorithm === 'gorila_dqn' && <GorilaFigure run={run} />}
      <div className={classes.grid}>
        {panels.map(({ id, title, metrics }) => (
          <MetricChart
            key={id}
            run={run}
            title={title}
            metrics={metrics}
            figure={{ panel: id }}
            x={x}
            smooth={smooth}
          />
        ))}
      </div>
    </>
  );
}
