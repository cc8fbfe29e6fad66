import { Skeleton } from '@mantine/core';
import { useMemo } from 'react';
import type { Figure } from '@/api/tails';
import { usePlotly } from './usePlotly';

const HEIGHT = 300;

type Props = {
  label: string;
  figure: Figure | undefined;
  height?: number;
  onFailed: (error: unknown) => void;
};

/** A scatter plot of the service, redrawn whenever it is shown again. */
export function Scatter({ label, figure, height = HEIGHT, onFailed }: Props) {
  const draw = useMemo(() => {
    if (!figure) return null;
    const { title: _, height: _height, ...layout } = figure.layout;
    const shown = { ...layout, margin: { ...layout.margin, t: 8 } };
    return () => ({ data: figure.data, layout: shown });
  }, [figure]);
  const box = usePlotly(draw, { onFailed });

  return (
    // The chart follows the panel, and never stretches it: it keeps the width at which it was drawn.
    <div ref={box} role="img" aria-label={label} style={{ height, contain: 'inline-size' }}>
      {!figure && <Skeleton height={height} radius={2} />}
    </div>
  );
}
