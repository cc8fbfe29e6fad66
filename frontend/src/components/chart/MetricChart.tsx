import { useIntersection } from '@mantine/hooks';
import { ChartPanel, type ChartPanelProps } from './ChartPanel';
import classes from './curves.module.css';
import { Grip, type Placement, PlacementItems } from './PanelHandles';
import { LARGE } from './panelSize';
import { PlacedPanel } from './PlacedPanel';

/** Of a small and of a large chart. */
const [POINTS, MANY_POINTS] = [500, 1000];
/** With more runs, each is drawn with fewer points. */
const MAX_DETAILED_RUNS = 10;
const FEW_POINTS = 250;

/** Charts just outside the viewport are drawn in advance. */
const NEAR_VIEWPORT = { rootMargin: '300px' };
/** Of a panel's heading and padding. */
const HEAD_PX = 28;

type Props = Omit<ChartPanelProps, 'height' | 'points' | 'grip'> & {
  /** Charts with as many share their requests; default: by their size. */
  points?: number;
  /** For a panel that can be moved and resized. */
  placement?: Placement;
  /** Its name among the panels that are moved; default: that of the chart. */
  name?: string;
};

/** A chart in a grid of charts, mounted and updated only in or near the viewport. */
export function MetricChart({ placement, name, ...props }: Props) {
  const { ref, entry } = useIntersection<HTMLElement>(NEAR_VIEWPORT);
  const { id, title, runs, main, menu } = props;
  return (
    <PlacedPanel ref={ref} title={title} main={main} placement={placement}>
      {({ columns, height }) =>
        entry?.isIntersecting ? (
          <ChartPanel
            {...props}
            height={height}
            points={
              props.points ??
              (runs.length > MAX_DETAILED_RUNS
                ? FEW_POINTS
                : columns > LARGE.columns / 2 || height >= LARGE.height
                  ? MANY_POINTS
                  : POINTS)
            }
            grip={placement && <Grip name={name ?? id} title={title} placement={placement} />}
            menu={
              <>
                {placement && <PlacementItems placement={placement} />}
                {menu}
              </>
            }
          />
        ) : (
          <div className={classes.unmounted} style={{ height: height + HEAD_PX }} />
        )
      }
    </PlacedPanel>
  );
}
