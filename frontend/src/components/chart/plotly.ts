/** The chart library, fetched when a chart is first shown. */
import type * as Plotly from 'plotly.js';

let loading: Promise<typeof Plotly> | undefined;

export function loadPlotly(): Promise<typeof Plotly> {
  loading ??= import('plotly.js-strict-dist-min').then((module) => module.default);
  // A failed download must not be remembered: the next chart tries again.
  loading.catch(() => (loading = undefined));
  return loading;
}
