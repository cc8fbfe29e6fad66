import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useMemo, useRef, type KeyboardEvent, type PointerEvent } from 'react';
import { formatNumber } from '@/lib/format';
import { drawLine, lostLives, withZero } from './draw';
import { range } from './envelope';
import classes from './replay.module.css';
import type { Trace } from './trace';

type Props = {
  trace: Trace;
  /** What V or Q should have said, drawn faint behind it. */
  returns?: Float64Array | undefined;
  step: number;
  onSeek: (step: number) => void;
};

const span = (a: [number, number], b: [number, number]): [number, number] => [
  Math.min(a[0], b[0]),
  Math.max(a[1], b[1]),
];

const BAND = 44;
const GAP = 12;
const HEIGHT = 2 * BAND + GAP;

/** Reward, value and lost lives over the whole episode; press, drag or use the arrows to move in it. */
export function TraceLine({ trace, returns, step, onSeek }: Props) {
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme('light');
  const steps = trace.rewards.length;
  const bounds = useMemo(() => {
    const value = range(trace.values);
    return { reward: withZero(trace.rewards), value: returns ? span(value, range(returns)) : value };
  }, [trace, returns]);

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || width < 1) return;
    const style = getComputedStyle(document.documentElement);
    const ink = (name: string): string => style.getPropertyValue(name).trim();
    const ratio = window.devicePixelRatio;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(HEIGHT * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = ink('--lost');
    for (const lost of lostLives(trace.lives))
      context.fillRect(((lost + 0.5) / steps) * width - 0.5, 0, 1, HEIGHT);
    drawLine(context, trace.rewards, bounds.reward, ink('--running'), { top: 2, width, height: BAND - 4 });
    const value = { top: BAND + GAP + 2, width, height: BAND - 4 };
    if (returns) drawLine(context, returns, bounds.value, ink('--line-strong'), value);
    drawLine(context, trace.values, bounds.value, ink('--accent'), value);
  }, [trace, returns, bounds, width, steps, scheme]);

  const seek = (event: PointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * steps);
    onSeek(Math.max(0, Math.min(steps - 1, at)));
  };
  const onKey = (event: KeyboardEvent): void => {
    const far = event.shiftKey ? 10 : 1;
    const to = { ArrowLeft: step - far, ArrowRight: step + far, Home: 0, End: steps - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onSeek(Math.max(0, Math.min(steps - 1, to)));
  };

  return (
    <div>
      <div className={classes.traceHead}>
        <span>
          decision <b className="num">{step + 1}</b> of <span className="num">{steps}</span>
        </span>
        <span>
          <i style={{ background: 'var(--running)' }} /> reward{' '}
          <b className="num">{formatNumber(trace.rewards[step])}</b>
        </span>
        <span>
          <i style={{ background: 'var(--accent)' }} /> {trace.actionValues ? 'max Q' : 'value V'}{' '}
          <b className="num">{formatNumber(trace.values[step])}</b>
        </span>
        {returns && (
          <span
            title={`Value error: what ${trace.actionValues ? 'Q' : 'V'} said less the discounted return that followed`}
          >
            <i style={{ background: 'var(--line-strong)' }} /> discounted return{' '}
            <b className="num">{formatNumber(returns[step])}</b> error{' '}
            <b className="num">{formatNumber((trace.values[step] ?? NaN) - (returns[step] ?? NaN))}</b>
          </span>
        )}
        {trace.lives.some((lives) => lives > 0) && (
          <span>
            <i style={{ background: 'var(--lost)' }} /> life lost
          </span>
        )}
      </div>
      <div
        ref={ref}
        role="slider"
        tabIndex={0}
        aria-label="Position in the episode"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, steps - 1)}
        aria-valuenow={step}
        aria-valuetext={`decision ${step + 1} of ${steps}`}
        className={classes.trace}
        style={{ height: HEIGHT }}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          seek(event);
        }}
        onPointerMove={(event) => event.buttons === 1 && seek(event)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div className={classes.cursor} style={{ left: `${((step + 0.5) / Math.max(1, steps)) * 100}%` }} />
      </div>
    </div>
  );
}
