import type { ReactNode } from 'react';
import type { PaperItem } from '@/api/studies';
import classes from './papers.module.css';

const line = { fill: 'none', stroke: 'currentColor', strokeWidth: 1.6 } as const;
const faint = { ...line, strokeOpacity: 0.45 } as const;

/** In a box of 56 × 36. */
const SHAPES: Record<PaperItem['shape'], ReactNode> = {
  curves: (
    <>
      <path d="M2 34C14 32 18 10 54 6" {...line} />
      <path d="M2 34C22 33 30 22 54 16" {...faint} />
      <path d="M2 34C30 33 40 30 54 27" {...faint} />
    </>
  ),
  scatter: (
    <g fill="currentColor">
      {[
        [6, 30],
        [12, 20],
        [18, 9],
        [23, 12],
        [27, 6],
        [32, 9],
        [37, 8],
        [42, 16],
        [47, 27],
        [52, 33],
      ].map(([x, y]) => (
        <circle key={x} cx={x} cy={y} r={2} />
      ))}
    </g>
  ),
  bars: (
    <g fill="currentColor">
      {[12, 20, 28, 24].map((height, at) => (
        <rect key={height} x={5 + at * 13} y={34 - height} width={8} height={height} />
      ))}
    </g>
  ),
  stacked_bars: (
    <g fill="currentColor">
      {[16, 13, 11, 9].map((low, at) => (
        <g key={low}>
          <rect x={5 + at * 13} y={34 - low} width={8} height={low} />
          <rect x={5 + at * 13} y={4} width={8} height={30 - low} fillOpacity={0.4} />
        </g>
      ))}
    </g>
  ),
  table: <path d="M3 4h50v28H3zM3 12h50M3 22h50M20 4v28M37 4v28" {...line} strokeWidth={1.2} />,
  steps: <path d="M2 34h10v-8h10v-8h8v-6h14V6h10" {...line} />,
  counts: (
    <>
      <path d="M2 30h12v-6h14v-8h26" {...line} />
      <path d="M2 32h24v-4h28" {...faint} />
      <path d="M2 20l6-4 6 3 8-9 8 3 10-6 14 2" {...faint} />
    </>
  ),
  sorted: (
    <>
      <path d="M2 6C20 7 30 12 54 33" {...line} />
      <path d="M2 9C12 16 16 30 54 34" {...faint} />
    </>
  ),
};

/** A small drawing of what a figure or table looks like. */
export function ShapeIcon({ shape }: { shape: PaperItem['shape'] }) {
  return (
    <svg className={classes.shape} viewBox="0 0 56 36" aria-hidden="true">
      {SHAPES[shape]}
    </svg>
  );
}
