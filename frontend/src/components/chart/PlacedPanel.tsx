import { type CSSProperties, type ReactNode, type RefCallback, useState } from 'react';
import classes from './curves.module.css';
import { type Placement, ResizeHandle, usePanelDrop } from './PanelHandles';
import { type PanelSize, SMALL } from './panelSize';

type Props = {
  title: string;
  /** Whether it is a section of the page. */
  main?: boolean | undefined;
  /** For a panel that can be moved and resized. */
  placement?: Placement | undefined;
  ref?: RefCallback<HTMLElement>;
  children: (size: PanelSize) => ReactNode;
};

/** The frame of a panel in a grid, on which others are dropped, and whose corner resizes it. */
export function PlacedPanel({ title, main = false, placement, ref, children }: Props) {
  const [preview, setPreview] = useState<PanelSize | null>(null);
  const size = preview ?? placement?.size ?? SMALL;
  const drop = usePanelDrop(placement);
  const Element = main ? 'section' : 'div';
  return (
    <Element
      ref={ref}
      className={`panel ${classes.small}`}
      style={{ '--columns': size.columns } as CSSProperties}
      {...(main ? { 'aria-label': title } : {})}
      {...drop}
    >
      {children(size)}
      {placement && (
        <ResizeHandle title={title} size={size} onPreview={setPreview} onSize={placement.onSize} />
      )}
    </Element>
  );
}
