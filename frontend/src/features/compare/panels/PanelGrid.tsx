import { Menu, Skeleton } from '@mantine/core';
import { lazy, type ReactNode, Suspense } from 'react';
import { MetricChart } from '@/components/chart/MetricChart';
import { placementOf } from '@/components/chart/PanelHandles';
import { LARGE, type PanelSize, sameSize, SMALL } from '@/components/chart/panelSize';
import { PlacedPanel } from '@/components/chart/PlacedPanel';
import curves from '@/components/chart/curves.module.css';
import { Empty } from '@/components/feedback';
import { EPISODE_RETURN } from '@/api/series';
import { inTab, metricOf, namesOf, type Panel, tabsOf } from '@/components/run/panels';
import { shortEnvironmentName } from '@/lib/environments';
import { metricPanel, type MetricProps } from './metricPanel';
import type { PanelPage } from './kinds';
import { FIRST_TAB } from './PanelTabs';

const KindPanel = lazy(async () => ({ default: (await import('./parts')).KindPanel }));

/** With several environments, two panels of a metric share a line. */
const HALF: PanelSize = { columns: 6, height: 320 };
/** Of a panel whose kind is not loaded yet, below its title. */
const HEAD_PX = 28;

export const defaultSize = (panel: Panel, areMixed: boolean): PanelSize => {
  const metric = metricOf(panel);
  if (metric === undefined) return SMALL;
  return areMixed ? HALF : metric === EPISODE_RETURN ? LARGE : SMALL;
};

type Props = MetricProps & {
  page: PanelPage;
  panels: readonly Panel[];
  onPanels: (panels: readonly Panel[]) => void;
  /** The open tab; undefined for the first. */
  tab: string | undefined;
  onEdit: (panel: Panel, at: number) => void;
  /** Asks for the name of a new tab for a panel. */
  onNewTab: (at: number) => void;
};

/** The panels of a tab, which can be moved, resized and edited. */
export function PanelGrid({ page, panels, onPanels, tab, onEdit, onNewTab, ...metrics }: Props) {
  const names = namesOf(panels);
  const { environments } = metrics;
  const areMixed = environments.length > 1;
  const shown = panels.flatMap((panel, at) => (panel.tab === tab ? [at] : []));
  const change = (at: number, to: Panel): void => onPanels(panels.with(at, to));
  const itemsOf = (panel: Panel, at: number): ReactNode => (
    <>
      <Menu.Item onClick={() => onEdit(panel, at)}>Edit…</Menu.Item>
      <Menu.Item onClick={() => onPanels(panels.toSpliced(at + 1, 0, panel))}>Duplicate</Menu.Item>
      {[undefined, ...tabsOf(panels)]
        .filter((other) => other !== panel.tab)
        .map((other) => (
          <Menu.Item key={other ?? ''} onClick={() => change(at, inTab(panel, other))}>
            Move to {other ?? FIRST_TAB}
          </Menu.Item>
        ))}
      <Menu.Item onClick={() => onNewTab(at)}>Move to a new tab…</Menu.Item>
      <Menu.Item onClick={() => onPanels(panels.toSpliced(at, 1))}>Remove</Menu.Item>
    </>
  );
  if (shown.length === 0)
    return tab === undefined ? null : <Empty>This tab has no panels yet: add one, or move one here.</Empty>;
  return (
    <div className={curves.placed}>
      <div>
        {shown.flatMap((at) => {
          const panel = panels[at];
          const name = names[at];
          if (!panel || name === undefined) return [];
          const standard = defaultSize(panel, areMixed);
          const size = {
            columns: panel.columns ?? standard.columns,
            height: panel.height_px ?? standard.height,
          };
          const placement = placementOf(
            shown.map((other) => names[other] ?? ''),
            name,
            size,
            (order) => {
              const sorted = order.map((other) => names.indexOf(other));
              onPanels(panels.map((other, index) => panels[sorted[shown.indexOf(index)] ?? index] ?? other));
            },
            (to) => change(at, sized(panel, to, standard)),
          );
          const metric = metricOf(panel);
          const items = itemsOf(panel, at);
          if (metric === undefined)
            return (
              <PlacedPanel key={name} title={panel.title ?? panel.kind} placement={placement}>
                {({ height }) => (
                  <Suspense fallback={<Skeleton height={height + HEAD_PX} radius={2} />}>
                    <KindPanel
                      panel={panel}
                      page={page}
                      name={name}
                      placement={placement}
                      height={height}
                      items={items}
                    />
                  </Suspense>
                )}
              </PlacedPanel>
            );
          return (areMixed ? environments : [undefined]).map((environment) => {
            const of = environment && shortEnvironmentName(environment);
            return (
              <MetricChart
                key={`${name} ${environment ?? ''}`}
                {...metricPanel(metric, panel.title, metrics, of)}
                environment={environment}
                id={name}
                placement={placement}
                menu={items}
              />
            );
          });
        })}
      </div>
    </div>
  );
}

/** The panel in a size; without one where it is the usual size. */
function sized(panel: Panel, size: PanelSize, standard: PanelSize): Panel {
  const { columns: _columns, height_px: _height, ...rest } = panel;
  // A scatter plot without a width stands below the others.
  return sameSize(size, standard) && panel.kind !== 'scatter'
    ? rest
    : { ...rest, columns: size.columns, height_px: size.height };
}
