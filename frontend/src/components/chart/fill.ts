import type { Data, Layout, PlotData } from 'plotly.js';
import type { Figure } from '@/api/figures';
import type { Chart, Curve } from '@/api/series';

/** What a trace without numbers says of the column it draws. */
type Meta = { run?: string; metric?: string; source?: string; y?: string };

const COLUMNS = ['mean', 'min', 'max', 'last', 'smoothed'] as const;

function columnOf(curve: Curve, name: string): (number | null)[] {
  const column = COLUMNS.find((each) => each === name);
  return (column && curve[column]) ?? curve.mean;
}

/** The service's figure with the numbers of series put into the traces that ask for them. */
export function fill(figure: Figure, chart: Chart): Data[] {
  return figure.data.map((trace) => {
    const { meta } = trace as { meta?: Meta };
    if (meta?.y === undefined) return trace;
    const { run, metric, source, y } = meta;
    const curve = chart.series.find(
      (each) => each.run === run && each.metric === metric && each.source === source,
    );
    const numbers = { x: curve?.x ?? [], y: curve ? columnOf(curve, y) : [] };
    return { ...trace, ...(numbers as Partial<PlotData>) } as Data;
  });
}

/** "1,000 of 123,456 points", where not every point is drawn. */
export function shownOfTotal(curves: readonly Curve[]): string {
  const total = curves.reduce((sum, curve) => sum + curve.n_total, 0);
  const shown = curves.reduce((sum, curve) => sum + curve.n_shown, 0);
  const words = (count: number): string => count.toLocaleString('en');
  return shown < total ? `${words(shown)} of ${words(total)} points` : `${words(total)} points`;
}

/** A layout without its title, which the panel around the picture already says. */
export function withoutTitle(layout: Partial<Layout> = {}): Partial<Layout> {
  const { title, ...rest } = layout;
  return { ...rest, margin: { ...rest.margin, t: 8 } };
}
