import { useEffect, useState } from 'react';
import type { PlotAxis } from './placement';

type Drawn = HTMLElement & {
  on?: (event: 'plotly_afterplot', listener: () => void) => void;
  removeListener?: (event: 'plotly_afterplot', listener: () => void) => void;
  _fullLayout?: { xaxis?: { _offset: number; _length: number; range: [number, number] } };
};

const same = (a: PlotAxis | null, b: PlotAxis): boolean =>
  a !== null &&
  a.left === b.left &&
  a.width === b.width &&
  a.range[0] === b.range[0] &&
  a.range[1] === b.range[1];

/** The horizontal axis of the chart inside an element, from the element's left edge; null until it is drawn. */
export function usePlotAxis(element: HTMLElement | null): PlotAxis | null {
  const [axis, setAxis] = useState<PlotAxis | null>(null);
  useEffect(() => {
    if (!element) return;
    let plot: Drawn | null = null;
    const update = (): void => {
      const drawn = plot?._fullLayout?.xaxis;
      if (!plot || !drawn) return;
      const left = plot.getBoundingClientRect().left - element.getBoundingClientRect().left + drawn._offset;
      const next: PlotAxis = { left, width: drawn._length, range: [drawn.range[0], drawn.range[1]] };
      setAxis((before) => (same(before, next) ? before : next));
    };
    const attach = (): void => {
      const current = element.querySelector<Drawn>('.js-plotly-plot');
      if (current === plot || (current && !current.on)) return;
      plot?.removeListener?.('plotly_afterplot', update);
      plot = current;
      plot?.on?.('plotly_afterplot', update);
      update();
    };
    attach();
    const observer = new MutationObserver(attach);
    observer.observe(element, {
      subtree: true,
      childList: true,
      attributes: true,
      attributeFilter: ['class'],
    });
    return () => {
      observer.disconnect();
      plot?.removeListener?.('plotly_afterplot', update);
    };
  }, [element]);
  return axis;
}
