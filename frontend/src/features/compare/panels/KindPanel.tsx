import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { useCurveView } from '@/components/chart/curveView';
import { ExportFigure } from '@/components/chart/export/ExportFigure';
import { sourceAt } from '@/components/chart/export/source';
import { Grip, type Placement, PlacementItems } from '@/components/chart/PanelHandles';
import { Empty } from '@/components/feedback';
import type { Panel } from '@/components/run/panels';
import { KINDS, type PanelPage } from './kinds';
import classes from './panels.module.css';

type Props = {
  panel: Panel;
  page: PanelPage;
  name: string;
  placement: Placement;
  height: number;
  /** Further items of its menu. */
  items: ReactNode;
};

/** What stands in the frame of a panel of any kind. */
export function KindPanel({ panel, page, name, placement, height, items }: Props) {
  const kind = KINDS.get(panel.kind);
  const title = panel.title ?? kind?.titleOf(panel, page.titles) ?? panel.kind;
  const refusal = kind ? kind.refusal?.(panel) : 'This Callboard does not know this kind of panel.';
  const curves = useCurveView();
  const [isExported, setExported] = useState(false);
  const source = refusal === undefined && isExported ? kind?.sourceOf?.(panel, page, curves) : undefined;
  return (
    <>
      <header className="row">
        <Grip name={name} title={title} placement={placement} />
        <h2 className={`ellipsis section-title ${classes.title}`} title={title}>
          {title}
        </h2>
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={`Options for ${title}`}>
              <IconDots size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <PlacementItems placement={placement} />
            {items}
            {kind?.sourceOf && (
              <>
                <Menu.Divider />
                <Menu.Item onClick={() => setExported(true)}>Export figure…</Menu.Item>
              </>
            )}
          </Menu.Dropdown>
        </Menu>
        {source && (
          <ExportFigure
            source={sourceAt({ name: panel.kind, title }, `/api/v1/figures/${source[0]}`, source[1])}
            log={panel.log ?? false}
            onClose={() => setExported(false)}
          />
        )}
      </header>
      {refusal === undefined && kind ? (
        <kind.Body panel={panel} title={title} page={page} height={height} />
      ) : (
        <div style={{ minHeight: height }}>
          <Empty>{refusal}</Empty>
        </div>
      )}
    </>
  );
}
