import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { type ReactNode, useRef, useState } from 'react';
import { ExportFigure } from './export/ExportFigure';
import type { ExportSource } from './export/source';

type Props = {
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
export function ChartMenu({ source, name, log, onLog, children }: Props) {
  const [isExported, setExported] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // Nothing outside the element that fills the screen is shown.
  const [full, setFull] = useState<Element | null>(null);
  return (
    <>
      <Menu
        position="bottom-end"
        onOpen={() => setFull(document.fullscreenElement)}
        portalProps={{ target: (full ?? document.body) as HTMLElement }}
      >
        <Menu.Target>
          <ActionIcon ref={button} variant="subtle" color="gray" aria-label={`Options for ${name}`}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => onLog(!log)}>{log ? 'Linear scale' : 'Logarithmic scale'}</Menu.Item>
          {document.fullscreenEnabled && (
            <Menu.Item
              onClick={() =>
                void (full
                  ? document.exitFullscreen()
                  : button.current?.closest('.panel')?.requestFullscreen())
              }
            >
              {full ? 'Leave full screen' : 'Full screen'}
            </Menu.Item>
          )}
          {children}
          <Menu.Divider />
          <Menu.Item
            onClick={() => {
              if (full) void document.exitFullscreen();
              setExported(true);
            }}
          >
            Export figure…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isExported && <ExportFigure source={source} log={log} onClose={() => setExported(false)} />}
    </>
  );
}
