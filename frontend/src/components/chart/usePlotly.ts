import type * as Plotly from 'plotly.js';
import type { Config, Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import { type RefObject, useEffect, useRef } from 'react';
import { isTouched } from '@/lib/hooks';
import { withTickTexts } from './scale';

let loading: Promise<typeof Plotly> | undefined;

/** Loads the chart library, when a chart is first shown. */
export function loadPlotly(): Promise<typeof Plotly> {
  loading ??= import('plotly.js-basic-dist-min').then((module) => module.default);
  // A failed download is not cached: the next chart retries.
  loading.catch(() => (loading = undefined));
  return loading;
}

const CONFIG: Partial<Config> = {
  displayModeBar: false,
  displaylogo: false,
  showTips: false,
  responsive: false,
  doubleClick: 'autosize',
};

/** What fills the element; its panel's background shows through. */
const onPanel = (layout: Partial<Layout>): Partial<Layout> => ({
  ...layout,
  paper_bgcolor: 'rgba(0,0,0,0)',
  plot_bgcolor: 'rgba(0,0,0,0)',
  autosize: true,
  ...(isTouched() ? { dragmode: false as const } : {}),
});

export type Drawing = { data: Data[]; layout: Partial<Layout> };

type Options = {
  onFailed: (error: unknown) => void;
  /** How long a redraw is delayed, in milliseconds. */
  waitMs?: () => number;
  /** After each drawing; `first` after the first one into this element. */
  onDrawn?: (element: PlotlyHTMLElement, first: boolean) => void;
};

/**
 * An element in which the library draws: anew whenever `draw` or an option changes, in the size of the element.
 *
 * `draw` gets the element, and is null while there is nothing to draw; it and the options keep their identity while
 * the figure stays as it is.
 */
export function usePlotly(
  draw: ((element: HTMLElement) => Drawing) | null,
  { onFailed, waitMs, onDrawn }: Options,
): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  const isDrawn = useRef(false);

  useEffect(() => {
    if (!draw) return;
    let current = true;
    const show = async (): Promise<void> => {
      const plotly = await loadPlotly();
      if (!current || !box.current) return;
      const first = !isDrawn.current;
      isDrawn.current = true;
      const { data, layout } = draw(box.current);
      const element = await plotly.react(box.current, data, withTickTexts(onPanel(layout)), CONFIG);
      onDrawn?.(element, first);
    };
    const timer = setTimeout(
      () =>
        void show().catch((error: unknown) => {
          if (current) onFailed(error);
        }),
      waitMs?.() ?? 0,
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [draw, onFailed, waitMs, onDrawn]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      // Its removal from the page is a change of size, too: the library refuses to draw it then.
      if (isDrawn.current && element.isConnected)
        void loadPlotly().then((plotly) => plotly.Plots.resize(element));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      if (isDrawn.current) void loadPlotly().then((plotly) => plotly.purge(element));
      isDrawn.current = false;
    };
  }, []);

  return box;
}
