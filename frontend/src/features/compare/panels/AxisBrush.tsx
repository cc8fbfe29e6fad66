import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react';
import type { Axis, Range } from './axes';
import classes from './panels.module.css';

/** What a key adds to an end of the range. */
const STEPS: Readonly<Record<string, number>> = {
  ArrowUp: 0.05,
  ArrowRight: 0.05,
  ArrowDown: -0.05,
  ArrowLeft: -0.05,
  PageUp: 0.25,
  PageDown: -0.25,
};
const WHOLE: Range = [0, 1];
/** Half the width of the strip that is dragged, and half the height of a handle. */
const [STRIP, HANDLE] = [12, 5] as const;
/** Shorter drags are clicks. */
const MIN_RANGE = 0.02;
/** Height of a tick's text. */
const TICK_PX = 13;
/** Of a character of a tick's text. */
const CHARACTER_PX = 6.2;

type Props = {
  axis: Axis;
  x: number;
  /** The width for texts. */
  room: number;
  top: number;
  bottom: number;
  range: Range | undefined;
  onRange: (range: Range | undefined) => void;
};

/** An axis on which a range is chosen: by dragging along it, or with the arrow keys at its ends. A click chooses all. */
export function AxisBrush({ axis, x, room, top, bottom, range, onRange }: Props) {
  const origin = useRef<number>(undefined);
  const [dragged, setDragged] = useState<Range>();
  const shown = dragged ?? range;
  const ends = shown ?? WHOLE;
  const yOf = (place: number): number => bottom - place * (bottom - top);
  const placeAt = ({ currentTarget, clientY }: PointerEvent<SVGElement>): number => {
    const { top: from } = currentTarget.ownerSVGElement?.getBoundingClientRect() ?? { top: 0 };
    return Math.min(1, Math.max(0, (bottom - (clientY - from)) / (bottom - top)));
  };
  const between = (a: number, b: number): Range => (a < b ? [a, b] : [b, a]);
  const move = (end: 0 | 1, event: KeyboardEvent): void => {
    const to = { Home: 0, End: 1 }[event.key] ?? ends[end] + (STEPS[event.key] ?? NaN);
    if (Number.isNaN(to)) return;
    event.preventDefault();
    const [low, high] = ends;
    const next: Range =
      end === 0 ? [Math.min(Math.max(0, to), high), high] : [low, Math.max(Math.min(1, to), low)];
    onRange(next[0] <= 0 && next[1] >= 1 ? undefined : next);
  };
  const characters = Math.max(3, Math.floor((room - 10) / CHARACTER_PX));
  const cut = (text: string): string =>
    text.length > characters ? `${text.slice(0, characters - 1)}…` : text;
  return (
    <g>
      <line x1={x} x2={x} y1={top} y2={bottom} className={classes.axis} />
      <text
        x={x}
        y={12}
        className={classes.axisTitle}
        textAnchor={x < 40 ? 'start' : 'middle'}
        dx={x < 40 ? -10 : 0}
      >
        <title>{axis.title}</title>
        {cut(axis.title)}
      </text>
      {apart(axis.ticks, yOf).map(({ at, text }) => (
        <text key={text} x={x + 9} y={yOf(at) + 4} className={classes.tick}>
          {cut(text)}
        </text>
      ))}
      {shown && (
        <rect
          x={x - 4}
          width={8}
          y={yOf(shown[1])}
          height={Math.max(1, yOf(shown[0]) - yOf(shown[1]))}
          className={classes.range}
        />
      )}
      <rect
        x={x - STRIP}
        width={2 * STRIP}
        y={top - HANDLE}
        height={bottom - top + 2 * HANDLE}
        className={classes.strip}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          origin.current = placeAt(event);
        }}
        onPointerMove={(event) => {
          if (origin.current !== undefined) setDragged(between(origin.current, placeAt(event)));
        }}
        onPointerUp={(event) => {
          if (origin.current === undefined) return;
          const next = between(origin.current, placeAt(event));
          origin.current = undefined;
          setDragged(undefined);
          onRange(next[1] - next[0] < MIN_RANGE ? undefined : next);
        }}
        onPointerCancel={() => {
          origin.current = undefined;
          setDragged(undefined);
        }}
      />
      {([0, 1] as const).map((end) => (
        <rect
          key={end}
          x={x - 6}
          width={12}
          y={yOf(ends[end]) - (end === 1 ? HANDLE : 0)}
          height={HANDLE}
          rx={2}
          className={classes.handle}
          role="slider"
          tabIndex={0}
          aria-label={`${end === 0 ? 'Lowest' : 'Highest'} ${axis.title}`}
          aria-orientation="vertical"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(100 * ends[end])}
          aria-valuetext={axis.textAt(ends[end])}
          onKeyDown={(event) => move(end, event)}
        />
      ))}
    </g>
  );
}

/** The ticks whose texts do not overlap, from the foot. */
function apart(ticks: Axis['ticks'], yOf: (place: number) => number): Axis['ticks'] {
  let last = Infinity;
  return ticks
    .toSorted((a, b) => a.at - b.at)
    .filter(({ at }) => {
      const isFree = last - yOf(at) >= TICK_PX;
      if (isFree) last = yOf(at);
      return isFree;
    });
}
