import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useMemo, useRef, type KeyboardEvent, type PointerEvent } from 'react';
import type { ExportSource } from '@/components/chart/export/source';
import { formatNumber } from '@/lib/format';
import { drawLine, range, ticks, withZero } from './draw';
import { markedOf, snapped, type Jumps } from './jumps';
import classes from './replay.module.css';
import { TimelineHead } from './TimelineHead';
import type { Trace } from './trace';

type Props = {
  trace: Trace;
  /** The discounted returns, drawn behind the values. */
  returns?: Float64Array | undefined;
  /** Value minus discounted return. */
  errors?: Float64Array | undefined;
  /** Marked, unless the rewards are too many; a click beside a mark goes to it. */
  jumps?: Jumps | undefined;
  step: number;
  onSeek: (step: number) => void;
  /** Only the values, with the returns; rewards are the marks below them. */
  compact?: boolean;
  /** Whether values were recorded: a person has none. */
  hasValues?: boolean;
  /** As a figure for a paper, where it can be exported. */
  exported?: ExportSource | undefined;
};

type Row = {
  title: string;
  lines: readonly { values: ArrayLike<number>; colour: string }[];
  bounds: [number, number];
};

const union = (a: [number, number], b: [number, number]): [number, number] => [
  Math.min(a[0], b[0]),
  Math.max(a[1], b[1]),
];

const ROW = 44;
const GAP = 18;
/** Room for the numbers of the axes. */
const LEFT = 52;
const BOTTOM = 18;
const TICK_SPACING = 90;
/** Size in px of a mark below the rows. */
const MARK = { width: 2, height: 5 };
/** How far from a mark a click still goes to it. */
const SNAP_PX = 4;
/** Numbers on the axis of a row. */
const MAX_TICKS = 3;

type RowProps = Pick<Props, 'trace' | 'returns' | 'errors' | 'hasValues'>;

/** The rows of the timeline: reward, value with return, and value error, each on its own scale. */
function rowsOf({ trace, returns, errors, hasValues }: RowProps): Row[] {
  const value = range(trace.values);
  const valueTitle = trace.actionValues ? 'max Q' : 'value V';
  const reward: Row = {
    title: 'reward',
    lines: [{ values: trace.rewards, colour: '--running' }],
    bounds: withZero(trace.rewards),
  };
  if (!hasValues) return [reward];
  return [
    reward,
    {
      title: returns ? `${valueTitle} and discounted return` : valueTitle,
      lines: [
        ...(returns ? [{ values: returns, colour: '--muted' }] : []),
        { values: trace.values, colour: '--accent' },
      ],
      bounds: returns ? union(value, range(returns)) : value,
    },
    ...(errors
      ? [{ title: 'value error', lines: [{ values: errors, colour: '--failed' }], bounds: withZero(errors) }]
      : []),
  ];
}

const topOf = (row: number, compact: boolean): number => (compact ? 4 : GAP) + row * (ROW + GAP);

/** Reward, value, value error and lost lives over the whole episode; a slider by click, drag and arrow keys. */
export function Timeline({
  trace,
  returns,
  errors: givenErrors,
  jumps,
  step,
  onSeek,
  compact = false,
  hasValues = true,
  exported,
}: Props) {
  const errors = compact ? undefined : givenErrors;
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme('light');
  const steps = trace.rewards.length;
  const rows = useMemo(
    () => rowsOf({ trace, returns, errors, hasValues }).slice(compact ? 1 : 0),
    [trace, returns, errors, compact, hasValues],
  );
  const marked = useMemo(() => jumps && markedOf(jumps, steps, compact), [jumps, steps, compact]);
  const height = topOf(rows.length, compact) - GAP + BOTTOM;

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    const plotWidth = width - LEFT;
    if (!context || plotWidth < 1) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const ratio = window.devicePixelRatio;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = `11px ${getComputedStyle(context.canvas).fontFamily}`;
    const write = (text: string, x: number, y: number, align: CanvasTextAlign): void => {
      context.fillStyle = colour('--muted');
      context.textAlign = align;
      context.fillText(text, x, y);
    };
    const x = (at: number): number => LEFT + ((at + 0.5) / steps) * plotWidth;
    rows.forEach(({ title, lines, bounds }, row) => {
      const top = topOf(row, compact);
      const [low, high] = bounds;
      // The head above names the only row.
      if (!compact) write(title, LEFT, top - 7, 'left');
      for (const tick of ticks(bounds, MAX_TICKS)) {
        const y = top + ROW - ((tick - low) / (high - low)) * ROW;
        context.fillStyle = colour('--line');
        context.fillRect(LEFT, Math.round(y), plotWidth, 1);
        write(formatNumber(tick), LEFT - 6, y + 4, 'right');
      }
      context.save();
      context.translate(LEFT, 0);
      for (const line of lines) {
        drawLine(context, line.values, bounds, colour(line.colour), { top, width: plotWidth, height: ROW });
      }
      context.restore();
    });
    // Steps count from 1, as in the head.
    for (const tick of ticks([1, steps], Math.max(2, Math.floor(plotWidth / TICK_SPACING)))) {
      if (!Number.isInteger(tick)) continue;
      const half = context.measureText(formatNumber(tick)).width / 2;
      // The label at the right edge is not cut off.
      write(formatNumber(tick), Math.min(x(tick - 1), width - half), height - 4, 'center');
    }
    context.fillStyle = colour('--lost');
    for (const lost of marked?.lostLives ?? []) {
      const top = topOf(0, compact);
      context.fillRect(x(lost) - 0.5, top, 1, height - top - BOTTOM);
    }
    const mark = (at: number, name: string): void => {
      context.fillStyle = colour(name);
      context.fillRect(x(at) - MARK.width / 2, height - BOTTOM, MARK.width, MARK.height);
    };
    for (const reward of marked?.rewards ?? []) {
      mark(reward, (trace.rewards[reward] ?? 0) < 0 ? '--failed' : '--running');
    }
    if (typeof marked?.largestError === 'number') mark(marked.largestError, '--failed');
  }, [trace, marked, rows, width, height, steps, scheme, compact]);

  const seek = (event: PointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const plotWidth = box.width - LEFT;
    const pointed = Math.floor(((event.clientX - box.left - LEFT) / plotWidth) * steps);
    // Only a click goes to a mark: dragging reaches every step.
    const within = event.type === 'pointerdown' ? Math.floor((SNAP_PX / plotWidth) * steps) : 0;
    const at = marked && within > 0 ? snapped(marked, pointed, within) : pointed;
    onSeek(Math.max(0, Math.min(steps - 1, at)));
  };
  const onKey = (event: KeyboardEvent): void => {
    const by = event.shiftKey ? 10 : 1;
    const to = { ArrowLeft: step - by, ArrowRight: step + by, Home: 0, End: steps - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onSeek(Math.max(0, Math.min(steps - 1, to)));
  };

  return (
    <div>
      <TimelineHead
        trace={trace}
        returns={returns}
        errors={errors}
        step={step}
        compact={compact}
        hasValues={hasValues}
        exported={exported}
      />
      <div
        ref={ref}
        role="slider"
        tabIndex={0}
        aria-label="Position in the episode"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, steps - 1)}
        aria-valuenow={step}
        aria-valuetext={`agent step ${step + 1} of ${steps}, reward ${formatNumber(trace.rewards[step])}`}
        className={classes.timeline}
        style={{ height }}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          seek(event);
        }}
        onPointerMove={(event) => event.buttons === 1 && seek(event)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div
          className={classes.cursor}
          style={{ left: `calc(${LEFT}px + (100% - ${LEFT}px) * ${(step + 0.5) / Math.max(1, steps)})` }}
        />
      </div>
    </div>
  );
}
