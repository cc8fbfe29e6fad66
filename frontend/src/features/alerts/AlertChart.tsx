import { useMemo } from 'react';
import type { Alert } from '@/api/alerts';
import { EPISODE_RETURN } from '@/api/series';
import { ChartPanel } from '@/components/chart/ChartPanel';
import { formatZoom } from '@/components/chart/curveView';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { Empty } from '@/components/feedback';

const HEIGHT = 180;
const POINTS = 500;

const ignore = (): void => undefined;

/** The metric that an alert is about, or the learning curve of its run, up to the alert's step. */
export default function AlertChart({ alert }: { alert: Alert & { run_id: string } }) {
  const { run_id: id, run_name: name, agent_steps: steps, metric } = alert;
  const runs = useMemo(() => [id], [id]);
  const metrics = useMemo(() => [metric ?? EPISODE_RETURN], [metric]);
  const figure = useMemo(() => (metric === null ? {} : { metric }), [metric]);
  const search = useMemo(() => (steps ? { zoom: formatZoom([0, steps]) } : {}), [steps]);
  return (
    <CurveViewProvider search={search} onSearch={ignore}>
      <ChartPanel
        runs={runs}
        title={metric ?? 'Learning curve'}
        monospace={metric !== null}
        label={`${metric ?? 'Learning curve'} of ${name}, up to the alert`}
        fileName={`${name} alert`}
        id={metric ?? EPISODE_RETURN}
        metrics={metrics}
        figure={figure}
        height={HEIGHT}
        points={POINTS}
        empty={<Empty>There were no points.</Empty>}
      />
    </CurveViewProvider>
  );
}
