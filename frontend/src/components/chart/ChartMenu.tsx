import { ActionIcon, Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import type { PlotlyHTMLElement } from 'plotly.js';
import type { RefObject } from 'react';
import type { Curve, XAxis } from '@/api/series';
import { saveCsv, savePicture } from './export';

type Props = {
  element: RefObject<PlotlyHTMLElement | null>;
  curves: readonly Curve[];
  x: XAxis;
  name: string;
};

/** Takes what a chart shows out of the page. */
export function ChartMenu({ element, curves, x, name }: Props) {
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
        <ActionIcon variant="subtle" color="gray" aria-label={`Save ${name}`}>
          <IconDownload size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={picture('png')}>Picture (PNG)</Menu.Item>
        <Menu.Item onClick={picture('svg')}>Drawing (SVG)</Menu.Item>
        <Menu.Item onClick={csv}>Points as drawn (CSV)</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
