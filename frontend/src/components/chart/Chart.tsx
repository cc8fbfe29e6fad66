import type { Config, Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import { useEffect, useRef, useState } from 'react';
import { Problem } from '@/components/feedback';
import classes from './Chart.module.css';
import { loadPlotly } from './plotly';

const REDRAW_MS = 1000;
const CONFIG: Partial<Config> = {
  displayModeBar: false,
  displaylogo: false,
  responsive: false,
  doubleClick: 'reset',
};

/** The panel's own ground shows through. */
const GROUND = { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)' };

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

  useEffect(() => {
    ready.current = onReady;
  }, [onReady]);

  useEffect(() => {
    let current = true;
    const wait = Math.max(0, drawnAt.current + REDRAW_MS - Date.now());
    const timer = setTimeout(() => {
      loadPlotly()
        .then(async (plotly) => {
          if (!current || !box.current) return;
          drawnAt.current = Date.now();
          const figure = { ...layout, ...GROUND, autosize: true, uirevision: view };
          const element = await plotly.react(box.current, data, figure, CONFIG);
          ready.current?.(element);
        })
        .catch(setFailure);
    }, wait);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [data, layout, view, tries]);

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
  return (
    <div ref={box} role="img" aria-label={label} className={classes.box} style={{ minHeight: height }} />
  );
}
