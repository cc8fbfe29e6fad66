import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import type { PlotlyHTMLElement } from 'plotly.js';
import type { ReactNode, RefObject } from 'react';
import { chartQuery, type ChartRequest } from '@/api/series';
import { loadPlotly } from './Chart';
import { showToast } from '@/components/toasts';

/** Downloads a chart as an image. */
export async function downloadImage(
  element: PlotlyHTMLElement,
  format: 'png' | 'svg',
  name: string,
): Promise<void> {
  const plotly = await loadPlotly();
  const { clientWidth: width, clientHeight: height } = element;
  await plotly.downloadImage(element, {
    format,
    filename: name,
    width,
    height,
    ...(format === 'png' ? { scale: 2 } : {}),
  });
}

type Cell = string | number | null | undefined;

const cell = (value: Cell): string => {
  const text = String(value ?? '');
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Downloads rows as CSV. */
export function downloadCsv(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  name: string,
): void {
  const text = [header, ...rows].map((row) => row.map(cell).join(',')).join('\n');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/csv' }));
  link.download = `${name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

type Props = {
  element: RefObject<PlotlyHTMLElement | null>;
  /** What the chart shows. */
  series: ChartRequest;
  name: string;
  /** Whether the vertical axis is logarithmic. */
  log: boolean;
  onLog: (log: boolean) => void;
  /** Further items, such as the chart's size and position. */
  children?: ReactNode;
};

/** A chart's menu: scale, full screen and downloads. */
export function ChartMenu({ element, series, name, log, onLog, children }: Props) {
  const client = useQueryClient();
  const csv = async (): Promise<void> => {
    const { series: curves } = await client.query({ ...chartQuery(series), staleTime: 0 });
    const rows = curves.flatMap((curve) =>
      curve.x.map((at, index) => [
        curve.run,
        curve.metric,
        curve.source,
        at,
        curve.mean[index],
        curve.min[index],
        curve.max[index],
        curve.smoothed?.[index],
      ]),
    );
    const { x } = series.axes;
    const counted = x === 'agent_steps' ? (curves[0]?.step_unit ?? x) : x;
    downloadCsv(['run', 'metric', 'source', counted, 'mean', 'min', 'max', 'smoothed'], rows, name);
  };
  const image = (format: 'png' | 'svg') => (): void => {
    if (element.current) void downloadImage(element.current, format, name);
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Options for ${name}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => onLog(!log)}>{log ? 'Linear scale' : 'Logarithmic scale'}</Menu.Item>
        <Menu.Item onClick={() => void element.current?.closest('.panel')?.requestFullscreen()}>
          Full screen
        </Menu.Item>
        {children}
        <Menu.Divider />
        <Menu.Item onClick={image('png')}>Download PNG</Menu.Item>
        <Menu.Item onClick={image('svg')}>Download SVG</Menu.Item>
        <Menu.Item onClick={() => void csv().catch(() => showToast('The data could not be loaded.'))}>
          Download CSV (downsampled)
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
