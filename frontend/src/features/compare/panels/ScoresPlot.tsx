import type { PlotlyHTMLElement } from 'plotly.js';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useCurveView } from '@/components/chart/curveView';
import { usePlotly } from '@/components/chart/usePlotly';
import { Problem } from '@/components/feedback';
import type { ScoresFigure } from '@/api/panelFigures';
import type { PanelPage } from './kinds';
import classes from './panels.module.css';

type Props = { figure: ScoresFigure; page: PanelPage; height: number; label: string };

/** The row of the list by the id of a run or a group. */
function rowsById({ rows }: PanelPage): ReadonlyMap<string, string> {
  return new Map(
    rows.flatMap(({ id, runs }) => [[id, id] as const, ...runs.map((run) => [run.id, id] as const)]),
  );
}

/** What the library keeps at a dot, and at the traces of bars, whose bars stand in their order. */
type Drawn = { __data__?: { data?: unknown } & readonly [{ trace: { customdata?: readonly unknown[] } }] };

/** Fades the bars and dots of all rows but one; without one, none. */
function fade(element: HTMLElement, rowOf: ReadonlyMap<string, string>, pointed: string | null): void {
  const set = (node: Element, id: unknown): void => {
    const row = typeof id === 'string' ? rowOf.get(id) : undefined;
    node.toggleAttribute('data-faded', pointed !== null && row !== undefined && row !== pointed);
  };
  for (const dot of element.querySelectorAll('.scatterlayer .points path'))
    set(dot, (dot as unknown as Drawn).__data__?.data);
  for (const bars of element.querySelectorAll('.barlayer .trace')) {
    const ids = (bars as unknown as Drawn).__data__?.[0].trace.customdata ?? [];
    bars.querySelectorAll('.point').forEach((bar, at) => set(bar, ids[at]));
  }
}

/** Bars and dots of the service, which point at their rows. */
export function ScoresPlot({ figure, page, height, label }: Props) {
  const { series } = useCurveView();
  const pointed = useSyncExternalStore(series.subscribe, series.get);
  const [failed, setFailed] = useState<unknown>(null);
  const rowOf = useMemo(() => rowsById(page), [page]);
  const latest = useRef(rowOf);
  useEffect(() => {
    latest.current = rowOf;
  }, [rowOf]);
  const draw = useCallback(() => {
    const { title: _title, height: _height, ...layout } = figure.layout;
    return { data: figure.data, layout: { ...layout, margin: { ...layout.margin, t: 8 } } };
  }, [figure]);
  const onDrawn = useCallback(
    (element: PlotlyHTMLElement, first: boolean): void => {
      if (!first) return;
      element.on('plotly_hover', ({ points: [point] }) => {
        const id: unknown = point?.customdata;
        series.set((typeof id === 'string' && latest.current.get(id)) || null);
      });
      element.on('plotly_unhover', () => series.set(null));
      element.on('plotly_afterplot', () => fade(element, latest.current, series.get()));
    },
    [series],
  );
  const box = usePlotly(draw, { onFailed: setFailed, onDrawn });
  useEffect(() => {
    if (box.current) fade(box.current, rowOf, pointed);
  }, [pointed, rowOf, box]);
  if (failed) return <Problem error={failed} onRetry={() => setFailed(null)} />;
  return <div ref={box} role="img" aria-label={label} className={classes.plot} style={{ height }} />;
}
