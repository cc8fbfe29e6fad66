import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Run } from '@/api/runs';
import { seriesNamesQuery } from '@/api/series';
import { MetricChart } from '@/components/chart/MetricChart';
import { CURVE_POINTS, keyMetricsOf } from './keyMetrics';
import classes from './keyMetrics.module.css';

/** The metrics that say first how the run's algorithm is doing. */
export function KeyMetrics({ run }: { run: Run }) {
  const { data } = useQuery(seriesNamesQuery(run.id));
  const runs = useMemo(() => [run.id], [run.id]);
  const metrics = keyMetricsOf(new Set(data?.items.map(({ metric }) => metric)));
  if (metrics.length === 0) return null;
  return (
    <section className={classes.key} aria-label="Key metrics">
      {metrics.map(({ metric, title }) => (
        <MetricChart
          key={metric}
          runs={runs}
          title={title}
          label={`${title} of ${run.name}`}
          fileName={`${run.name} ${metric}`.replaceAll('/', ' ')}
          id={metric}
          metrics={[metric]}
          figure={{ metric }}
          points={CURVE_POINTS}
        />
      ))}
    </section>
  );
}
