import { Skeleton } from '@mantine/core';
import type * as Plotly from 'plotly.js';
import type { Config, Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import { type KeyboardEvent, type MouseEvent, useEffect, useRef, useState } from 'react';
import { formatX, type Range } from '@/api/series';
import { Problem } from '@/components/feedback';
import classes from './Chart.module.css';
import { rangeAfter, useCurveView, zoomOf } from './curveView';
import { addTooltips } from './legend';
import { type Entry, valuesAt } from './readout';
import { Readout } from './Readout';

let loading: Promise<typeof Plotly> | undefined;

/** Loads the chart library, when a chart is first shown. */
export function loadPlotly(): Promise<typeof Plotly> {
  loading ??= import('plotly.js-basic-dist-min').then((module) => module.default);
  // A failed download is not cached: the next chart retries.
  loading.catch(() => (loading = undefined));
  return loading;
}

const REDRAW_MS = 1000;
/** For this time after a zoom, its details are drawn as soon as they arrive. */
const ZOOM_MS = 3000;
/** How far from the pointer a mark may be to be named. */
const NEAR_PX = 6;
/** The room that a tooltip below the chart needs. */
const READOUT_PX = 160;
/** As in Chart.module.css: its lines in each column, and the least width of one. */
const [READOUT_LINES, COLUMN_PX] = [11, 276];

const CONFIG: Partial<Config> = {
  displayModeBar: false,
  displaylogo: false,
  showTips: false,
  responsive: false,
  doubleClick: 'autosize',
};

/** Transparent: the panel's background shows through. */
const BACKGROUND = { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)' };

/** An axis of a drawn chart: positions in pixels of the plot. */
type Axis = {
  c2p: (value: number) => number;
  p2c: (px: number) => number;
  range: Range;
  _offset: number;
  _length: number;
};
type Plot = { xaxis: Axis; yaxis: Axis & { tickformat?: string } };

const plotOf = (element: HTMLElement | null): Plot | undefined =>
  (element as unknown as { _fullLayout?: Plot } | null)?._fullLayout;

type Props = {
  /** The accessible name. */
  label: string;
  /** What the horizontal axis counts; without it, the x of the page. */
  x?: string | null | undefined;
  data: Data[];
  layout: Partial<Layout>;
  /** The minimum height; the chart fills its panel. */
  height: number;
  /** The state of the legend is kept while this key stays the same. */
  view: string;
  onReady?: (element: PlotlyHTMLElement) => void;
};

/**
 * A plotly figure that redraws in place, at most once a second. Zoom and crosshair are those of all charts of
 * the page.
 */
export function Chart({ label, x: counted, data, layout, height, view, onReady }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const drawnAt = useRef(0);
  const zoomedAt = useRef(0);
  const ready = useRef(onReady);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const [drawn, setDrawn] = useState(false);
  const [readout, setReadout] = useState<{
    x: number;
    entries: Entry[];
    room: number;
    above: boolean;
  } | null>(null);
  const { view: shown, change, crosshair } = useCurveView();
  const { zoom } = shown;
  const onZoom = useRef(change);

  useEffect(() => {
    ready.current = onReady;
    onZoom.current = change;
  }, [onReady, change]);

  useEffect(() => {
    zoomedAt.current = Date.now();
  }, [zoom]);

  useEffect(() => {
    let current = true;
    const zooming = Date.now() - zoomedAt.current < ZOOM_MS;
    const wait = zooming ? 0 : Math.max(0, drawnAt.current + REDRAW_MS - Date.now());
    const timer = setTimeout(() => {
      loadPlotly()
        .then(async (plotly) => {
          if (!current || !box.current) return;
          const first = drawnAt.current === 0;
          drawnAt.current = Date.now();
          const figure = {
            ...layout,
            ...BACKGROUND,
            xaxis: {
              ...layout.xaxis,
              // Drops this chart's own zoom when that of the page changes.
              uirevision: `${view} ${String(zoom)}`,
              ...(zoom ? { range: [...zoom], autorange: false as const } : {}),
            },
            yaxis: { ...layout.yaxis, uirevision: `${view} ${String(zoom)}` },
            autosize: true,
            uirevision: view,
          };
          const element = await plotly.react(box.current, data, figure, CONFIG);
          if (first) {
            element.on('plotly_relayout', (event) => {
              const range = zoomOf(event);
              if (range !== undefined) onZoom.current({ zoom: range });
            });
            element.on('plotly_afterplot', () => addTooltips(element));
          }
          addTooltips(element);
          setDrawn(true);
          ready.current?.(element);
        })
        .catch(setError);
    }, wait);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [data, layout, view, tries, zoom]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      // Its removal from the page is a change of size, too: the library refuses to draw it then.
      if (drawnAt.current && element.isConnected)
        void loadPlotly().then((plotly) => plotly.Plots.resize(element));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      if (drawnAt.current) void loadPlotly().then((plotly) => plotly.purge(element));
    };
  }, []);

  useEffect(
    () =>
      crosshair.subscribe((x) => {
        const [plot, mark] = [plotOf(box.current), line.current];
        if (!mark) return;
        const left = plot && x !== null ? plot.xaxis.c2p(x) : -1;
        const visible = plot && left >= 0 && left <= plot.xaxis._length;
        mark.style.display = visible ? 'block' : 'none';
        if (!visible) return;
        mark.style.left = `${plot.xaxis._offset + left}px`;
        mark.style.top = `${plot.yaxis._offset}px`;
        mark.style.height = `${plot.yaxis._length}px`;
      }),
    [crosshair],
  );

  const leave = (): void => {
    crosshair.set(null);
    setReadout(null);
  };
  const point = ({ clientX, clientY, buttons }: MouseEvent): void => {
    const plot = plotOf(box.current);
    const bounds = box.current?.getBoundingClientRect();
    if (!plot || !bounds || buttons !== 0) {
      leave();
      return;
    }
    const { xaxis, yaxis } = plot;
    const [px, py] = [clientX - bounds.left - xaxis._offset, clientY - bounds.top - yaxis._offset];
    if (px < 0 || px > xaxis._length || py < 0 || py > yaxis._length) {
      leave();
      return;
    }
    const x = xaxis.p2c(px);
    crosshair.set(x);
    const entries = valuesAt(data, x, Math.abs(xaxis.p2c(NEAR_PX) - xaxis.p2c(0)));
    const room = READOUT_LINES * Math.max(1, Math.floor(bounds.width / COLUMN_PX));
    setReadout({ x, entries, room, above: bounds.bottom + READOUT_PX > window.innerHeight });
  };

  const press = (event: KeyboardEvent): void => {
    const plot = plotOf(box.current);
    if (!plot || event.ctrlKey || event.altKey || event.metaKey) return;
    const range = rangeAfter(event.key, plot.xaxis.range);
    if (range === undefined) return;
    event.preventDefault();
    change({ zoom: range });
  };

  if (error) {
    const retry = () => {
      setError(null);
      setTries(tries + 1);
    };
    return <Problem error={error} onRetry={retry} />;
  }
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
      <div ref={line} className={classes.crosshair} aria-hidden="true" />
      {readout && readout.entries.length > 0 && (
        <Readout
          heading={formatX(counted ?? shown.x, readout.x)}
          entries={readout.entries}
          room={readout.room}
          above={readout.above}
          percent={layout.yaxis?.tickformat?.endsWith('%') ?? false}
        />
      )}
    </div>
  );
}
