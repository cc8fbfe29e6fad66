import { Skeleton } from '@mantine/core';
import { useEffect, useRef } from 'react';
import type { Figure } from '@/api/tails';
import { isTouched } from '@/lib/hooks';
import { loadPlotly } from './Chart';
import { withTickTexts } from './scale';

const HEIGHT = 300;

type Props = { label: string; figure: Figure | undefined; onFailed: (error: unknown) => void };

/** A scatter plot of the service, redrawn whenever it is shown again. */
export function Scatter({ label, figure, onFailed }: Props) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = box.current;
    if (!element || !figure) return;
    const { title: _, ...layout } = figure.layout;
    const shown = {
      ...layout,
      margin: { ...layout.margin, t: 8 },
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

  return (
    <div ref={box} role="img" aria-label={label} style={{ height: HEIGHT }}>
      {!figure && <Skeleton height={HEIGHT} radius={2} />}
    </div>
  );
}
