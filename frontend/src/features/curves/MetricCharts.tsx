import { Button, Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Run } from '@/api/runs';
import { seriesNamesQuery, type XAxis } from '@/api/series';
import { Empty, Loading, Problem } from '@/components/feedback';
import { groupBy } from '@/lib/group';
import { hasEnded } from '@/lib/states';
import { moved, ordered, toggled, useArrangement } from './arrangement';
import classes from './curves.module.css';
import { MetricChart } from './MetricChart';

type Props = {
  run: Run;
  x: XAxis;
  smooth: number;
  /** Which metrics, by their name. */
  only: (metric: string) => boolean;
};

/** Metrics of a run, in sections by the part of their names before the slash. */
export function MetricCharts({ run, x, smooth, only }: Props) {
  const { data, error, refetch } = useQuery(seriesNamesQuery(run.id));
  const [arrangement, arrange] = useArrangement();
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the metrics" />;
  const metrics = [...new Set(data.items.map(({ metric }) => metric))].filter(only).sort();
  if (metrics.length === 0)
    return (
      <Empty>
        {hasEnded(run.state)
          ? 'The run ended before it reported anything.'
          : 'No metric yet; the engine reports some seconds after it starts.'}
      </Empty>
    );
  const { hidden, large, order } = arrangement;
  const shown = metrics.filter((metric) => !hidden.includes(metric));
  const sectionOf = (metric: string): string => metric.split('/')[0] ?? metric;
  return (
    <div className={classes.sections}>
      <div className="row">
        <span className="grow" />
        <Menu closeOnItemClick={false} position="bottom-end">
          <Menu.Target>
            <Button variant="default" size="xs">
              {shown.length < metrics.length ? `${shown.length} of ${metrics.length} charts` : 'Charts'}
            </Button>
          </Menu.Target>
          <Menu.Dropdown className={classes.choice}>
            {metrics.map((metric) => (
              <Menu.CheckboxItem
                key={metric}
                checked={!hidden.includes(metric)}
                onChange={() => arrange({ ...arrangement, hidden: toggled(hidden, metric) })}
              >
                {metric}
              </Menu.CheckboxItem>
            ))}
          </Menu.Dropdown>
        </Menu>
      </div>
      {shown.length === 0 && <Empty>Every chart is hidden: choose some under Charts.</Empty>}
      {[...groupBy(shown, sectionOf)]
        .map(([section, names]) => [section, ordered(names, order)] as const)
        .map(([section, names]) => (
          <section key={section} aria-label={`Metrics of ${section}`}>
            <h3 className="section-title" style={{ marginBottom: 8 }}>
              {section}
            </h3>
            <div className={classes.grid}>
              {names.map((metric) => (
                <MetricChart
                  key={metric}
                  run={run}
                  title={metric}
                  named
                  metrics={[metric]}
                  figure={{ metric }}
                  x={x}
                  // An evaluation is a mean already.
                  smooth={section === 'eval' ? 0 : smooth}
                  large={large.includes(metric)}
                  menu={
                    <>
                      <Menu.CheckboxItem
                        closeMenuOnClick
                        checked={large.includes(metric)}
                        onChange={() => arrange({ ...arrangement, large: toggled(large, metric) })}
                      >
                        Large
                      </Menu.CheckboxItem>
                      {([-1, 1] as const).map((by) => (
                        <Menu.Item
                          key={by}
                          disabled={metric === (by < 0 ? names[0] : names.at(-1))}
                          onClick={() => arrange({ ...arrangement, order: moved(order, names, metric, by) })}
                        >
                          {by < 0 ? 'Move forward' : 'Move back'}
                        </Menu.Item>
                      ))}
                      <Menu.Item onClick={() => arrange({ ...arrangement, hidden: toggled(hidden, metric) })}>
                        Hide
                      </Menu.Item>
                    </>
                  }
                />
              ))}
            </div>
          </section>
        ))}
    </div>
  );
}
