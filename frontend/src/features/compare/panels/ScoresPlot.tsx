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

/** Fades the bars and dots of all rows but one; without one, none. */
function fade(element: HTMLElement, rowOf: ReadonlyMap<string, string>, pointed: string | null): void {
  for (const node of element.querySelectorAll<SVGElement>('.points path, .barlayer .point')) {
    // The library's own data of a bar or dot.
    const { __data__: data } = node as unknown as { __data__?: { data?: unknown } };
    const row = typeof data?.data === 'string' ? rowOf.get(data.data) : undefined;
    node.toggleAttribute('data-faded', pointed !== null && row !== undefined && row !== pointed);
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
