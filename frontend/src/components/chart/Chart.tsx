import { Skeleton } from '@mantine/core';
import type { Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { formatX, type Range } from '@/api/series';
import { Problem } from '@/components/feedback';
import classes from './Chart.module.css';
import { type Place, rangeAfter, useCurveView, zoomOf } from './curveView';
import { apart, canLabel, type EndLabel, endLabels, LABEL_PX, withoutLines, withRoom } from './endLabels';
import { type Entry, valuesAt } from './readout';
import { Readout } from './Readout';
import type { Trace } from '@/api/tails';
import { seriesOf } from './traceNames';
import { type Drawing, usePlotly } from './usePlotly';

const REDRAW_MS = 1000;
/** For this long after a zoom, redraws are not delayed. */
const ZOOM_MS = 3000;
/** How far from the pointer a mark may be to be named. */
const NEAR_PX = 6;
/** How far from the pointer the nearest line may be for the others to be faded. */
const NEAR_LINE_PX = 24;
/** As in Chart.module.css: the width of a card of values. */
const CARD_PX = 240;
/** Distance of the card from the crosshair. */
const CARD_GAP_PX = 12;
/** Distance of line names from the plot. */
const LABEL_GAP_PX = 6;
/** The lines of a card at the pointer, and of one in another chart. */
const [CARD_LINES, FEW_LINES] = [12, 6];

/** An axis of a drawn chart: positions in pixels of the plot. */
type Axis = {
  c2p: (value: number) => number;
  p2c: (px: number) => number;
  range: Range;
  _offset: number;
  _length: number;
};
/** `yaxis2` is that of a lane under the plot. */
type Plot = { xaxis: Axis; yaxis: Axis & { tickformat?: string }; yaxis2?: Axis };

const plotOf = (element: HTMLElement | null): Plot | undefined =>
  (element as unknown as { _fullLayout?: Plot } | null)?._fullLayout;

/** The lower end of the plot and of the lane under it. */
function bottomOf({ yaxis, yaxis2 }: Plot): number {
  const bottom = yaxis._offset + yaxis._length;
  return yaxis2 ? Math.max(bottom, yaxis2._offset + yaxis2._length) : bottom;
}

type PlacedLabel = EndLabel & { top: number; left: number };

const NOTHING: readonly PlacedLabel[] = [];

/** Places the names of lines at their ends. */
function placedLabels(element: HTMLElement, lines: readonly Data[] | null): readonly PlacedLabel[] {
  const plot = plotOf(element);
  if (!plot || !lines) return NOTHING;
  const { xaxis, yaxis } = plot;
  // On a log scale, a value of 0 or below has no place.
  const labels = endLabels(lines, xaxis.range).filter(({ value }) => Number.isFinite(yaxis.c2p(value)));
  const [from, to] = [yaxis._offset - LABEL_PX / 2, yaxis._offset + yaxis._length + LABEL_PX / 2];
  const wanted = labels.map(({ value }) => {
    const top = yaxis._offset + yaxis.c2p(value) - LABEL_PX / 2;
    return Math.min(Math.max(top, from), to);
  });
  const tops = apart(wanted, from, to);
  const left = xaxis._offset + xaxis._length + LABEL_GAP_PX;
  return labels.map((label, at) => ({ ...label, left, top: tops[at] ?? 0 }));
}

const BOLD_PX = 3.5;

/** The traces, with wider lines for some runs or groups. */
const withBold = (data: Data[], bold: ReadonlySet<string>): Data[] =>
  data.map((trace) => {
    const { meta, line } = trace as Trace & { meta?: { kind?: string }; line?: object };
    const isBold = meta?.kind === 'line' && bold.has(seriesOf(trace as Trace) ?? '');
    return isBold ? ({ ...trace, line: { ...line, width: BOLD_PX } } as Data) : trace;
  });

/** Fades the lines and bands of all runs and groups but one; without one, none. */
function fadeOthers(element: HTMLElement, series: string | null): void {
  for (const node of element.querySelectorAll<SVGGElement>('.scatterlayer > .trace')) {
    // The library's own data of a drawn line.
    const { __data__: data } = node as unknown as { __data__?: readonly [{ trace: Trace }] };
    const own = data && seriesOf(data[0].trace);
    node.toggleAttribute('data-faded', series !== null && own !== undefined && own !== series);
  }
}

/** What a chart shows at the crosshair. */
type Values = {
  x: number;
  entries: readonly Entry[];
  nearest: Entry | undefined;
  /** Whether the pointer is close to the line of that. */
  isClose: boolean;
  /** Whether the pointer is in this chart. */
  isPointed: boolean;
  style: CSSProperties;
};

/** The values at a place, and where their card is: beside the pointer, or at the top in other charts. */
function valuesIn(element: HTMLElement, { xaxis, yaxis }: Plot, place: Place, data: readonly Data[]): Values {
  const isPointed = place.chart === element;
  const entries = valuesAt(data, place.x, Math.abs(xaxis.p2c(NEAR_PX) - xaxis.p2c(0)));
  const away = ({ value }: Entry): number => {
    const distance = value === null ? NaN : Math.abs(yaxis._offset + yaxis.c2p(value) - place.top);
    return Number.isFinite(distance) ? distance : Infinity;
  };
  const nearest = entries.toSorted((a, b) => (away(a) < away(b) ? -1 : away(a) > away(b) ? 1 : 0))[0];
  const at = xaxis._offset + xaxis.c2p(place.x);
  const fitsRight = at + CARD_GAP_PX + CARD_PX <= element.clientWidth;
  const isLow = isPointed && place.top > element.clientHeight / 2;
  return {
    x: place.x,
    entries,
    nearest: isPointed ? nearest : undefined,
    isClose: isPointed && nearest !== undefined && away(nearest) <= NEAR_LINE_PX,
    isPointed,
    style: {
      ...(fitsRight
        ? { left: at + CARD_GAP_PX }
        : { right: Math.max(0, element.clientWidth - at + CARD_GAP_PX) }),
      ...(isLow
        ? { bottom: element.clientHeight - place.top + CARD_GAP_PX }
        : { top: isPointed ? place.top + CARD_GAP_PX : yaxis._offset }),
    },
  };
}

type Props = {
  /** The accessible name. */
  label: string;
  /** What the horizontal axis counts; without it, the x of the page. */
  x?: string | null | undefined;
  data: Data[];
  layout: Partial<Layout>;
  /** The minimum height; the chart fills its panel. */
  height: number;
  /** The state of the legend and this chart's own zoom are kept while this key stays the same. */
  view: string;
  /** Whether lines are named at their ends, where there is room. */
  endNames?: boolean;
  /** Whether the page has a list of the lines, in place of a legend. */
  isListed?: boolean;
};

/**
 * A plotly figure that redraws in place, at most once a second. Zoom and crosshair are those of all charts of
 * the page.
 */
export function Chart(props: Props) {
  const [error, setError] = useState<unknown>(null);
  if (error) return <Problem error={error} onRetry={() => setError(null)} />;
  return <DrawnChart {...props} onError={setError} />;
}

function DrawnChart({
  label,
  x: xAxis,
  data,
  layout,
  height,
  view,
  endNames,
  isListed,
  onError,
}: Props & { onError: (error: unknown) => void }) {
  const crosshairLine = useRef<HTMLDivElement>(null);
  const drawnAt = useRef(0);
  const zoomedAt = useRef(0);
  const [drawn, setDrawn] = useState(false);
  const [readout, setReadout] = useState<Values | null>(null);
  const [labels, setLabels] = useState<readonly PlacedLabel[]>([]);
  const placeCrosshair = useRef<(() => void) | null>(null);
  const shownData = useRef(data);
  /** The lines that are named at their ends; null if none is. */
  const labelled = useRef<readonly Data[] | null>(null);
  const { view: pageView, change, crosshair, series, bold } = useCurveView();
  const { zoom } = pageView;
  const pointed = useSyncExternalStore(series.subscribe, series.get);
  const onZoom = useRef(change);

  useEffect(() => {
    onZoom.current = change;
    shownData.current = data;
  }, [change, data]);

  useEffect(() => {
    zoomedAt.current = performance.now();
  }, [zoom]);

  const waitMs = useCallback((): number => {
    const now = performance.now();
    return now - zoomedAt.current < ZOOM_MS ? 0 : Math.max(0, drawnAt.current + REDRAW_MS - now);
  }, []);
  const draw = useCallback(
    ({ clientWidth, clientHeight }: HTMLElement): Drawing => {
      drawnAt.current = performance.now();
      const isLabelled = endNames && canLabel(data, layout, clientWidth, clientHeight);
      const drawing = isLabelled || isListed ? withoutLines(data, layout) : { data, layout };
      labelled.current = isLabelled ? data : null;
      return {
        data: bold ? withBold(drawing.data, bold) : drawing.data,
        layout: {
          ...(isLabelled ? withRoom(drawing.layout, data) : drawing.layout),
          xaxis: {
            ...layout.xaxis,
            // Drops this chart's own zoom when that of the page changes.
            uirevision: `${view} ${String(zoom)}`,
            ...(zoom ? { range: [...zoom], autorange: false as const } : {}),
          },
          yaxis: { ...layout.yaxis, uirevision: `${view} ${String(zoom)}` },
          uirevision: view,
        },
      };
    },
    [data, layout, view, zoom, endNames, isListed, bold],
  );
  const onDrawn = useCallback(
    (element: PlotlyHTMLElement, first: boolean): void => {
      if (first) {
        element.on('plotly_relayout', (event) => {
          const range = zoomOf(event);
          if (range !== undefined) onZoom.current({ zoom: range });
        });
        element.on('plotly_afterplot', () => {
          setLabels(placedLabels(element, labelled.current));
          fadeOthers(element, series.get());
          placeCrosshair.current?.(); // its axes may have changed
        });
      }
      setLabels(placedLabels(element, labelled.current));
      setDrawn(true);
    },
    [series],
  );
  const box = usePlotly(draw, { onFailed: onError, waitMs, onDrawn });

  useEffect(() => {
    const show = (): void => {
      const [element, plot, line] = [box.current, plotOf(box.current), crosshairLine.current];
      const place = crosshair.get();
      if (!element || !line) return;
      const left = plot && place ? plot.xaxis.c2p(place.x) : -1;
      const visible = plot && place && left >= 0 && left <= plot.xaxis._length;
      line.style.display = visible ? 'block' : 'none';
      if (!visible) {
        setReadout(null);
        return;
      }
      line.style.left = `${plot.xaxis._offset + left}px`;
      line.style.top = `${plot.yaxis._offset}px`;
      line.style.height = `${bottomOf(plot) - plot.yaxis._offset}px`;
      const values = valuesIn(element, plot, place, shownData.current);
      setReadout(values);
      if (values.isPointed) series.set((values.isClose && values.nearest?.series) || null);
    };
    placeCrosshair.current = show;
    return crosshair.subscribe(show);
  }, [crosshair, series, box]);
  useEffect(() => {
    if (box.current) fadeOthers(box.current, pointed);
  }, [pointed, box]);

  const leave = (): void => {
    crosshair.set(null);
    series.set(null);
  };
  const point = ({ clientX, clientY, buttons }: MouseEvent): void => {
    const [element, plot] = [box.current, plotOf(box.current)];
    const bounds = element?.getBoundingClientRect();
    if (!plot || !bounds || buttons !== 0) {
      leave();
      return;
    }
    const { xaxis, yaxis } = plot;
    const [px, top] = [clientX - bounds.left - xaxis._offset, clientY - bounds.top];
    const label =
      px > xaxis._length && labels.find((label) => top >= label.top && top < label.top + LABEL_PX);
    if (label) {
      crosshair.set(null);
      series.set(label.series ?? null);
    } else if (px < 0 || px > xaxis._length || top < yaxis._offset || top > bottomOf(plot)) leave();
    else if (element) crosshair.set({ x: xaxis.p2c(px), chart: element, top });
  };

  const press = (event: KeyboardEvent): void => {
    const plot = plotOf(box.current);
    if (!plot || event.ctrlKey || event.altKey || event.metaKey) return;
    const range = rangeAfter(event.key, plot.xaxis.range);
    if (range === undefined) return;
    event.preventDefault();
    change({ zoom: range });
  };

  return (
    <div className={classes.wrap} style={{ minHeight: height }} onMouseMove={point} onMouseLeave={leave}>
      {!drawn && <Skeleton className={classes.skeleton} radius={2} aria-hidden="true" />}
      <div
        ref={box}
        role="img"
        aria-label={label}
        tabIndex={0}
        className={classes.box}
        onKeyDown={press}
        // During its first drawing the library shows default axes.
        style={{ visibility: drawn ? 'visible' : 'hidden' }}
      />
      <div ref={crosshairLine} className={classes.crosshair} aria-hidden="true" />
      {labels.map(({ name, series: own, colour, top, left }, index) => (
        <span
          key={`${name} ${index}`}
          className={classes.endName}
          data-faded={(pointed !== null && own !== pointed) || undefined}
          style={{ top, left, color: colour }}
          aria-hidden="true"
        >
          {name}
        </span>
      ))}
      {readout && readout.entries.length > 0 && (
        <Readout
          heading={readout.isPointed ? formatX(xAxis ?? pageView.x, readout.x) : undefined}
          entries={readout.entries}
          nearest={readout.nearest}
          room={readout.isPointed ? CARD_LINES : FEW_LINES}
          percent={layout.yaxis?.tickformat?.endsWith('%') ?? false}
          style={readout.style}
        />
      )}
    </div>
  );
}
