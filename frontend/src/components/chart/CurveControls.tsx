import { SegmentedControl, Slider } from '@mantine/core';
import { useState } from 'react';
import type { XAxis } from '@/api/series';
import { X_AXES } from '@/lib/axes';
import classes from './Chart.module.css';

type Props = { x: XAxis; smooth: number; onX: (x: XAxis) => void; onSmooth: (smooth: number) => void };

/** How learning curves are drawn: over what, and how smooth. */
export function CurveControls({ x, smooth, onX, onSmooth }: Props) {
  const [moving, setMoving] = useState(smooth);
  const [set, setSet] = useState(smooth);
  // Back and forward change the address without the slider being moved.
  if (set !== smooth) {
    setSet(smooth);
    setMoving(smooth);
  }
  return (
    <>
      <span className={classes.smooth}>
        <span aria-hidden="true">Smoothing</span>
        <Slider
          size="xs"
          min={0}
          max={0.99}
          step={0.01}
          label={(value) => value.toFixed(2)}
          value={moving}
          onChange={setMoving}
          onChangeEnd={onSmooth}
          thumbLabel="Smoothing: weight of the past"
          className={classes.slider}
        />
        <span className="num">{moving.toFixed(2)}</span>
      </span>
      <SegmentedControl
        size="xs"
        aria-label="Horizontal axis"
        value={x}
        data={X_AXES.map(({ id, label }) => ({ value: id, label }))}
        onChange={(value) => onX(value)}
      />
    </>
  );
}
