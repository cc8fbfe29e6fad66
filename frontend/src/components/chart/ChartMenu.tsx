import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import type { PlotlyHTMLElement } from 'plotly.js';
import type { ReactNode, RefObject } from 'react';
import type { Curve, XAxis } from '@/api/series';
import { saveCsv, savePicture } from './export';

type Props = {
  element: RefObject<PlotlyHTMLElement | null>;
  curves: readonly Curve[];
  x: XAxis;
  name: string;
  /** Whether the vertical axis is logarithmic. */
  log: boolean;
  onLog: (log: boolean) => void;
  /** Further items: where the chart stands, and how large. */
  children?: ReactNode;
};

/** How large and on which scale a chart is drawn, and what it shows as a file. */
export function ChartMenu({ element, curves, x, name, log, onLog, children }: Props) {
  const csv = (): void => {
    const rows = curves.flatMap((curve) =>
      curve.x.map((at, index) => [
        curve.metric,
        curve.source,
        at,
        curve.mean[index],
        curve.min[index],
        curve.max[index],
        curve.smoothed?.[index],
      ]),
    );
    saveCsv(['metric', 'source', x, 'mean', 'min', 'max', 'smoothed'], rows, name);
  };
  const picture = (format: 'png' | 'svg') => (): void => {
    if (element.current) void savePicture(element.current, format, name);
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`View and save ${name}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Drag in it to zoom, double-click to see all</Menu.Label>
        <Menu.CheckboxItem closeMenuOnClick checked={log} onChange={onLog}>
          Logarithmic scale
        </Menu.CheckboxItem>
        <Menu.Item onClick={() => void element.current?.closest('.panel')?.requestFullscreen()}>
          Full screen
        </Menu.Item>
        {children}
        <Menu.Divider />
        <Menu.Item onClick={picture('png')}>Picture (PNG)</Menu.Item>
        <Menu.Item onClick={picture('svg')}>Drawing (SVG)</Menu.Item>
        <Menu.Item onClick={csv}>Points as drawn (CSV)</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
