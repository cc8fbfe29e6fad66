import { Button, Menu, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type CSSProperties, type ReactNode, useMemo, useState } from 'react';
import type { Run } from '@/api/runs';
import { seriesNamesQuery } from '@/api/series';
import { Empty, Loading, Problem } from '@/components/feedback';
import { hasEnded } from '@/lib/run';
import { matching, ordered, reordered, resized, sizeOf, toggled, useArrangement } from './arrangement';
import classes from '@/components/chart/curves.module.css';
import { MetricChart } from '@/components/chart/MetricChart';
import { placementOf } from '@/components/chart/PanelHandles';
import { GRID_COLUMNS, SMALL } from '@/components/chart/panelSize';

type Props = {
  run: Run;
  /** Which metrics to show, by name. */
  filter: (metric: string) => boolean;
  /** What follows the charts, once their number is known. */
  below?: ReactNode;
};

const ALL_SOURCES = ['*'];
const sectionOf = (metric: string): string =>
  (metric.includes('/') ? (metric.split('/')[0] ?? '') : '') || 'scalars';

/** A run's metrics, in sections by the prefix of their names. */
export function MetricCharts({ run, filter, below }: Props) {
  const { data, error, refetch } = useQuery(seriesNamesQuery(run.id));
  const [arrangement, arrange] = useArrangement();
  const [find, setFind] = useState('');
  const runs = useMemo(() => [run.id], [run.id]);
  const problem = error && <Problem error={error} onRetry={() => void refetch()} />;
  if (error && !data)
    return (
      <>
        {problem}
        {below}
      </>
    );
  if (!data) return <Loading label="Loading the metrics" />;
  const metrics = [...new Set(data.items.map(({ metric }) => metric))].filter(filter).sort();
  if (metrics.length === 0)
    return (
      <>
        {problem}
        <Empty>
          {hasEnded(run.state)
            ? 'The run ended before it reported any metrics.'
            : 'No metrics yet; the first are reported a few seconds after the run starts.'}
        </Empty>
        {below}
      </>
    );
  const { hidden, order, collapsed = [] } = arrangement;
  const visible = metrics.filter((metric) => !hidden.includes(metric));
  const shown = matching(visible, find);
  const sections = [...Map.groupBy(shown, sectionOf)];
  const names = sections.map(([section]) => section);
  const allFolded = names.length > 0 && names.every((name) => collapsed.includes(name));
  const unmatched = collapsed.filter((name) => !names.includes(name));
  const hide = (others: readonly string[], hiding: boolean): void => {
    const rest = hidden.filter((metric) => !others.includes(metric));
    arrange({ ...arrangement, hidden: hiding ? [...rest, ...others] : rest });
  };
  return (
    <div className={classes.sections}>
      {problem}
      <div className={classes.head}>
        <TextInput
          type="search"
          size="xs"
          aria-label="Find metrics"
          placeholder="Find metrics"
          value={find}
          onChange={({ currentTarget }) => setFind(currentTarget.value)}
        />
        <span className="grow" />
        <Button
          variant="default"
          size="xs"
          onClick={() =>
            arrange({ ...arrangement, collapsed: allFolded ? unmatched : [...unmatched, ...names] })
          }
        >
          {allFolded ? 'Expand all' : 'Collapse all'}
        </Button>
        <Menu closeOnItemClick={false} position="bottom-end">
          <Menu.Target>
            <Button variant="default" size="xs">
              {visible.length < metrics.length ? `${visible.length} of ${metrics.length} charts` : 'Charts'}
            </Button>
          </Menu.Target>
          <Menu.Dropdown className={classes.menu}>
            <Menu.Item onClick={() => hide(matching(metrics, find), false)}>Show all</Menu.Item>
            <Menu.Item onClick={() => hide(matching(metrics, find), true)}>Hide all</Menu.Item>
            <Menu.Divider />
            {matching(metrics, find).map((metric) => (
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
      {visible.length === 0 && <Empty>All charts are hidden. Select some under Charts.</Empty>}
      {visible.length > 0 && shown.length === 0 && <Empty>No matching metrics.</Empty>}
      <div className={classes.placed}>
        <div className={classes.flow}>
          {sections.map(([section, unordered]) => {
            const sectionMetrics = ordered(unordered, order);
            const isFolded = collapsed.includes(section);
            const columns = sectionMetrics.reduce(
              (sum, metric) => sum + sizeOf(arrangement, metric).columns,
              0,
            );
            return (
              <section
                key={section}
                aria-label={`Metrics of ${section}`}
                className={classes.section}
                style={
                  { '--columns': isFolded ? SMALL.columns : Math.min(columns, GRID_COLUMNS) } as CSSProperties
                }
              >
                <h3 className="section-title" style={{ marginBottom: 8 }}>
                  <button
                    type="button"
                    className={classes.fold}
                    aria-expanded={!isFolded}
                    onClick={() => arrange({ ...arrangement, collapsed: toggled(collapsed, section) })}
                  >
                    {isFolded ? <IconChevronRight size={14} /> : <IconChevronDown size={14} />}
                    {section} <span className="muted">{sectionMetrics.length}</span>
                  </button>
                </h3>
                {!isFolded && (
                  <div>
                    {sectionMetrics.map((metric) => (
                      <MetricChart
                        key={metric}
                        runs={runs}
                        title={metric}
                        monospace
                        label={`${metric} of ${run.name}`}
                        fileName={`${run.name} ${metric}`.replaceAll('/', ' ')}
                        id={metric}
                        metrics={[metric]}
                        source={ALL_SOURCES}
                        figure={{ metric }}
                        placement={placementOf(
                          sectionMetrics,
                          metric,
                          sizeOf(arrangement, metric),
                          (names) => arrange({ ...arrangement, order: reordered(order, names) }),
                          (size) => arrange(resized(arrangement, metric, size)),
                        )}
                        menu={<Menu.Item onClick={() => hide([metric], true)}>Hide</Menu.Item>}
                      />
                    ))}
                  </div>
                )}
              </section>
            );
          })}
        </div>
      </div>
      {below}
    </div>
  );
}
