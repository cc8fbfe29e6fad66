import type { ComponentProps } from 'react';
import { EPISODE_RETURN, type Spread } from '@/api/series';
import type { MarksVersion } from '@/api/figures';
import type { MetricChart } from '@/components/chart/MetricChart';
import { Empty } from '@/components/feedback';

const LEARNING_CURVES = {
  title: 'Learning curves',
  main: true,
  label: 'Learning curves of the compared runs',
  fileName: 'comparison',
  metrics: [EPISODE_RETURN],
  empty: <Empty>None of these runs has finished an episode yet.</Empty>,
};

const panelOf = (metric: string) => ({
  title: metric,
  monospace: true,
  label: `${metric} of the compared runs`,
  fileName: `comparison ${metric}`.replaceAll('/', ' '),
  metrics: [metric],
  figure: { metric },
  empty: <Empty>None of these runs has reported this metric yet.</Empty>,
});

export type MetricProps = {
  runs: readonly string[];
  /** The runs' environments. Their returns have no common scale: each environment has a panel of each metric. */
  environments: readonly string[];
  /** The learning curve as the service draws it. */
  learningCurve: { scoredBy: string };
  /** What is drawn of several seeds; undefined for runs. */
  spread: Spread | undefined;
  /** Of learning curves. */
  marks: MarksVersion | undefined;
  /** Hidden runs and groups; hiding one does not change the others. */
  hidden: ReadonlySet<string>;
};

type Chart = Omit<ComponentProps<typeof MetricChart>, 'id' | 'environment' | 'placement' | 'menu'>;

/** The chart of a metric, perhaps in an environment. */
export function metricPanel(
  metric: string,
  title: string | undefined,
  { runs, learningCurve, spread, marks, hidden }: MetricProps,
  environment: string | undefined,
): Chart {
  const isReturn = metric === EPISODE_RETURN;
  const panel = isReturn ? { ...LEARNING_CURVES, figure: learningCurve } : panelOf(metric);
  const of = (text: string): string => (environment ? `${text} · ${environment}` : text);
  return {
    ...panel,
    title: of(title ?? panel.title),
    ...(title === undefined ? {} : { monospace: false }),
    label: of(panel.label),
    fileName: environment ? `${panel.fileName} ${environment}` : panel.fileName,
    runs,
    // Curves of groups, and those of other metrics, have no marks.
    marks: isReturn && !spread ? marks : undefined,
    spread,
    hidden,
  };
}
