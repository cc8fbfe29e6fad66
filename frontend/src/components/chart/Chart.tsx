import type { Config, Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import { useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Problem } from '@/components/feedback';
import classes from './Chart.module.css';
import { LinkedXContext, zoomOf } from './linkedX';
import { loadPlotly } from './plotly';

const REDRAW_MS = 1000;
const CONFIG: Partial<Config> = {
  displayModeBar: false,
  displaylogo: false,
  showTips: false,
  responsive: false,
  doubleClick: 'autosize',
};

/** The panel's own ground shows through. */
const GROUND = { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)' };

const alone = (): (() => void) => () => undefined;
const everything = (): null => null;

type Props = {
  /** What a screen reader says in place of the picture. */
  label: string;
  data: Data[];
  layout: Partial<Layout>;
  /** At least this high; it takes what room its panel has. */
  height: number;
  /** Zoom is kept while this stays the same. */
  view: string;
  onReady?: (element: PlotlyHTMLElement) => void;
};

/** A plotly figure that redraws in place, at most once a second. */
export function Chart({ label, data, layout, height, view, onReady }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const drawnAt = useRef(0);
  const ready = useRef(onReady);
  const [failure, setFailure] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const [drawn, setDrawn] = useState(false);
  const linked = useContext(LinkedXContext);
  const range = useSyncExternalStore(linked?.subscribe ?? alone, linked?.range ?? everything);

  const link = useRef(linked);

  useEffect(() => {
    ready.current = onReady;
    link.current = linked;
  }, [onReady, linked]);

  useEffect(() => {
    let current = true;
    const wait = Math.max(0, drawnAt.current + REDRAW_MS - Date.now());
    const timer = setTimeout(() => {
      loadPlotly()
        .then(async (plotly) => {
          if (!current || !box.current) return;
          const first = drawnAt.current === 0;
          drawnAt.current = Date.now();
          const xaxis = linked && {
            ...layout.xaxis,
            // What was zoomed here counts no longer once all charts show something else.
            uirevision: `${view} ${String(range)}`,
            ...(range ? { range: [...range], autorange: false } : {}),
          };
          const figure = { ...layout, ...GROUND, ...(xaxis && { xaxis }), autosize: true, uirevision: view };
          const element = await plotly.react(box.current, data, figure, CONFIG);
          if (first) {
            element.on('plotly_relayout', (event) => {
              const zoom = zoomOf(event);
              if (zoom !== undefined) link.current?.set(zoom);
            });
          }
          setDrawn(true);
          ready.current?.(element);
        })
        .catch(setFailure);
    }, wait);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [data, layout, view, tries, linked, range]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (drawnAt.current) void loadPlotly().then((plotly) => plotly.Plots.resize(element));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      if (drawnAt.current) void loadPlotly().then((plotly) => plotly.purge(element));
    };
  }, []);

  if (failure) {
    const retry = () => {
      setFailure(null);
      setTries(tries + 1);
    };
    return <Problem error={failure} onRetry={retry} />;
  }
  // Half-way through its first drawing the library shows axes of its own.
  const visibility = drawn ? 'visible' : 'hidden';
  return (
    <div
      ref={box}
      role="img"
      aria-label={label}
      className={classes.box}
      style={{ minHeight: height, visibility }}
    />
  );
}
