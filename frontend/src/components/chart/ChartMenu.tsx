import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import type { PlotlyHTMLElement } from 'plotly.js';
import { type ReactNode, type RefObject, useState } from 'react';
import { ExportFigure } from './export/ExportFigure';
import type { ExportSource } from './export/source';

type Props = {
  element: RefObject<PlotlyHTMLElement | null>;
  /** The chart as a figure to export. */
  source: ExportSource;
  name: string;
  /** Whether the vertical axis is logarithmic. */
  log: boolean;
  onLog: (log: boolean) => void;
  /** Further items, such as the chart's size and position. */
  children?: ReactNode;
};

/** A chart's menu: scale, full screen and export. */
export function ChartMenu({ element, source, name, log, onLog, children }: Props) {
  const [isExported, setExported] = useState(false);
  return (
    <>
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
          <Menu.Item onClick={() => setExported(true)}>Export figure…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isExported && <ExportFigure source={source} log={log} onClose={() => setExported(false)} />}
    </>
  );
}
