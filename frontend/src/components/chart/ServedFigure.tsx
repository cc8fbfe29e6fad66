import type { PlotlyHTMLElement } from 'plotly.js';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { Figure } from '@/api/tails';
import { usePlotly } from './usePlotly';

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

type Props = {
  figure: Figure;
  label: string;
  onFailed: (error: unknown) => void;
  /** Called with the number of a clicked point, or bar, of the first trace. */
  onPoint?: ((number: number) => void) | undefined;
};

/** A figure of the service at the height that it was laid out for. */
export function ServedFigure({ figure, label, onFailed, onPoint }: Props) {
  const height = figure.layout.height ?? HEIGHT;
  const draw = useCallback(() => {
    const { width: _, ...layout } = figure.layout as Figure['layout'] & { width?: number };
    return { data: figure.data, layout };
  }, [figure]);
  const clicked = useRef(onPoint);
  useEffect(() => {
    clicked.current = onPoint;
  }, [onPoint]);
  const onDrawn = useCallback((element: PlotlyHTMLElement, first: boolean) => {
    if (first)
      element.on('plotly_click', ({ points: [point] }) => {
        if (point) clicked.current?.(point.pointNumber);
      });
  }, []);
  const box = usePlotly(draw, { onFailed, onDrawn });

  return <div ref={box} role="img" aria-label={label} style={{ height }} />;
}
