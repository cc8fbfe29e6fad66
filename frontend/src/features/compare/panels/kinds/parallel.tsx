import { useElementSize } from '@mantine/hooks';
import { useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useCurveView } from '@/components/chart/curveView';
import { useLineStyles } from '@/components/chart/lineStyles';
import { Empty } from '@/components/feedback';
import { plural } from '@/lib/format';
import type { Row } from '../../rows';
import { differing } from '../../ScoreScatter';
import { settingsOf } from '../../Tables';
import { type Axis, axisOf, type Brushes, type Range, within } from '../axes';
import { AxisBrush } from '../AxisBrush';
import type { BodyProps, PanelKind } from '../kinds';
import classes from '../panels.module.css';
import { scoreName, settingName } from '../words';

/** The most axes of settings, unless they are chosen. */
const MAX_AXES = 6;
const NONE: Brushes = new Map();
/** Of the plot: below the titles, above the foot, and for the texts of the last axis. */
const [TOP, FOOT, SIDE, LAST] = [28, 8, 12, 56] as const;

const best = ({ runs }: Row): number | null =>
  runs.reduce<number | null>(
    (most, { best_return: value }) => (value === null ? most : Math.max(most ?? -Infinity, value)),
    null,
  );

/** A line for each row across the axes; a range on an axis hides the rows outside it, on the whole page. */
function Body({ panel, page, height }: BodyProps) {
  const { ref, width } = useElementSize<HTMLDivElement>();
  const { rows, titles, hidden, onHidden, styles, grouped } = page;
  const { series } = useCurveView();
  const pointed = useSyncExternalStore(series.subscribe, series.get);
  const lookOf = useLineStyles();
  const [brushes, setBrushes] = useState(NONE);
  /** What was hidden before the first range. */
  const before = useRef<readonly string[]>(undefined);
  const axes = useMemo(() => {
    const runs = rows.flatMap((row) => row.runs);
    const differ = differing(runs).filter((path) => path !== 'seed' || !grouped);
    const paths = panel.settings ?? differ.filter((path) => path !== 'seed').slice(0, MAX_AXES);
    const settings = rows.map((row) => (row.runs[0] ? settingsOf(row.runs[0]) : new Map<string, unknown>()));
    const scores = rows.map((row) => (panel.score === 'best_return' ? best(row) : row.score));
    return [
      ...paths.map((path) =>
        axisOf(
          path,
          settingName(path, titles),
          settings.map((values) => values.get(path)),
        ),
      ),
      axisOf('score', scoreName(panel), scores),
    ];
  }, [rows, titles, grouped, panel]);
  const brush = (id: string, range: Range | undefined): void => {
    const next = new Map(brushes);
    if (range === undefined) next.delete(id);
    else next.set(id, range);
    if (brushes.size === 0) before.current = [...hidden];
    setBrushes(next);
    if (next.size === 0) onHidden(before.current ?? []);
    else {
      const inside = new Set(within(axes, next, rows.length));
      onHidden(rows.filter((_, at) => !inside.has(at)).map(({ id: row }) => row));
    }
  };
  if (axes.length < 2) return <Empty>These runs differ in no setting.</Empty>;
  const step = (Math.max(width, 1) - SIDE - LAST) / (axes.length - 1);
  const xOf = (at: number): number => SIDE + at * step;
  const yOf = (place: number): number => TOP + (1 - place) * (height - TOP - FOOT);
  const nDrawn = rows.filter(({ id }) => !hidden.has(id)).length;
  // Lines that are not drawn elsewhere stand below the others.
  const order = [...rows.keys()].toSorted(
    (a, b) => Number(hidden.has(rows[b]?.id ?? '')) - Number(hidden.has(rows[a]?.id ?? '')),
  );
  return (
    <div ref={ref} className={classes.parallel} style={{ height }}>
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="group"
          aria-label={`${plural(axes.length, 'axis', 'axes')}, ${nDrawn} of ${plural(rows.length, 'line')} drawn`}
          onMouseLeave={() => series.set(null)}
        >
          {order.map((at) => {
            const row = rows[at];
            if (!row) return null;
            const isHidden = hidden.has(row.id);
            const d = pathOf(axes, at, xOf, yOf);
            return (
              <g key={row.id} onMouseEnter={() => series.set(isHidden ? null : row.id)}>
                <title>{row.label}</title>
                <path d={d} className={classes.target} />
                <path
                  d={d}
                  className={classes.across}
                  data-hidden={isHidden || undefined}
                  data-faded={(pointed !== null && pointed !== row.id) || undefined}
                  stroke={
                    isHidden
                      ? 'var(--line-strong)'
                      : (lookOf(styles.get(row.id) ?? 0)?.colour ?? 'var(--muted)')
                  }
                />
              </g>
            );
          })}
          {axes.map((axis, at) => (
            <AxisBrush
              key={axis.id}
              axis={axis}
              x={xOf(at)}
              room={at === axes.length - 1 ? LAST : step}
              top={TOP}
              bottom={height - FOOT}
              range={brushes.get(axis.id)}
              onRange={(range) => brush(axis.id, range)}
            />
          ))}
        </svg>
      )}
    </div>
  );
}

/** The line of a row, with gaps at axes on which it has no value. */
function pathOf(
  axes: readonly Axis[],
  row: number,
  xOf: (at: number) => number,
  yOf: (place: number) => number,
): string {
  let isOpen = false;
  return axes
    .map(({ places }, at) => {
      const place = places[row];
      if (place === undefined) {
        isOpen = false;
        return '';
      }
      const part = `${isOpen ? 'L' : 'M'}${xOf(at).toFixed(1)} ${yOf(place).toFixed(1)}`;
      isOpen = true;
      return part;
    })
    .join('');
}

export const kind: PanelKind = {
  label: 'Parallel coordinates',
  order: 70,
  fields: ['settings', 'score'],
  maxSettings: 20,
  size: { columns: 6, height: 260 },
  titleOf: () => 'Settings and score',
  Body,
};
