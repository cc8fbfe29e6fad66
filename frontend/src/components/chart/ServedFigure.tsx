import { useEffect, useRef, useState, type RefObject } from 'react';
import type { Figure } from '@/api/tails';
import { isTouched } from '@/lib/hooks';
import { loadPlotly } from './Chart';
import { withTickTexts } from './scale';

/** Widths for which figures are laid out; in between they are stretched. */
const WIDTHS = [320, 560, 760, 960, 1280] as const;
const HEIGHT = 360;

/** The largest of `WIDTHS` that fits into an element; undefined until it is measured. */
export function useFittingWidth(): [RefObject<HTMLDivElement | null>, number | undefined] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState<number>();
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => {
      const fitting = WIDTHS.filter((width) => width <= element.clientWidth).at(-1) ?? WIDTHS[0];
      setWidth(fitting);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

type Props = { figure: Figure; label: string; onFailed: (error: unknown) => void };

/** A figure of the service at the height that it was laid out for. */
export function ServedFigure({ figure, label, onFailed }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const height = figure.layout.height ?? HEIGHT;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const { width: _, ...layout } = figure.layout as Figure['layout'] & { width?: number };
    const shown = {
      ...layout,
      paper_bgcolor: 'rgba(0,0,0,0)',
      plot_bgcolor: 'rgba(0,0,0,0)',
      autosize: true,
      ...(isTouched() ? { dragmode: false as const } : {}),
    };
    loadPlotly()
      .then((plotly) =>
        plotly.react(element, figure.data, withTickTexts(shown), { displayModeBar: false, showTips: false }),
      )
      .catch(onFailed);
    const observer = new ResizeObserver(() => {
      // Its removal from the page is a change of size, too: the library refuses to draw it then.
      if (element.isConnected && element.classList.contains('js-plotly-plot'))
        void loadPlotly().then((plotly) => plotly.Plots.resize(element));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [figure, onFailed]);

  useEffect(() => {
    const element = box.current;
    return () => {
      if (element?.classList.contains('js-plotly-plot'))
        void loadPlotly().then((plotly) => plotly.purge(element));
    };
  }, []);

  return <div ref={box} role="img" aria-label={label} style={{ height }} />;
}
