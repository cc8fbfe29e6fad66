/** What can be exported: a figure of the service, as data to draw and as files. */
import { api, unwrap } from '@/api/client';
import { type FigureRequest, nameOf } from '@/api/figures';
import { smoothingParameters } from '@/api/series';
import { type Answer, type Figure, wholeFigure } from '@/api/tails';
import { onLogScale, outsideMarks, yAxis } from '../scale';

/** Formats that the service writes. */
export type FileFormat = 'csv' | 'zip' | 'caption';

/** Of the matplotlib script in the ZIP. */
export type ScriptOptions = {
  width_in?: number;
  line_width_pt?: number;
  legend?: 'below' | 'right' | 'inside' | 'none';
  heading?: string;
  log_y?: boolean;
  /** Entries of the legend in their order, as `NUMBER:TEXT`. */
  entry?: string[];
};

/** A figure that can be exported. */
export type ExportSource = {
  /** Of files, without their ending. */
  name: string;
  /** Of the dialog. */
  title: string;
  /** Identifies the figure: equal keys are equal figures. */
  key: readonly unknown[];
  /** Whether the service lays it out for a width: panels side by side, or one below the other. */
  depends_on_width?: boolean;
  /** The figure for a width in CSS pixels, at the font size of pages. */
  figure: (signal: AbortSignal, width_px: number) => Promise<Pick<Figure, 'data' | 'layout'>>;
  file: (
    format: FileFormat,
    options: ScriptOptions & { width?: number },
    signal?: AbortSignal,
  ) => Promise<Blob>;
};

/** A figure of the service by its address. */
export function sourceAt(
  { name, title }: Pick<ExportSource, 'name' | 'title'>,
  path: string,
  query: Record<string, unknown>,
  adapted: (figure: Figure) => Pick<Figure, 'data' | 'layout'> = (figure) => figure,
): ExportSource {
  // Which parameters there are depends on the address.
  const get = (more: Record<string, unknown>, parseAs: 'json' | 'blob', signal?: AbortSignal) =>
    unwrap<unknown>(
      api.GET(
        path as '/api/v1/figures/learning_curve',
        { params: { query: { ...query, ...more } }, parseAs, ...(signal && { signal }) } as never,
      ),
    );
  return {
    name,
    title,
    key: [path, query],
    figure: async (signal) => adapted(wholeFigure((await get({ theme: 'light' }, 'json', signal)) as Answer)),
    file: async (format, options, signal) => (await get({ format, ...options }, 'blob', signal)) as Blob,
  };
}

/** How a chart of a page shows a figure. */
type Shown = {
  /** Runs that are not drawn. */
  hidden: ReadonlySet<string>;
  log: boolean;
  /** Whether the chart has bands. */
  hasBands: boolean;
};

/** A figure of runs over training, as a chart shows it. */
export function curveSource(
  named: Pick<ExportSource, 'name' | 'title'>,
  request: FigureRequest,
  { hidden, log, hasBands }: Shown,
): ExportSource {
  const { runs, axes, metrics, panel, source = [], spread, environment, styles } = request;
  const { x, smoothing, zoom, points } = axes;
  const kind = nameOf(request).split(':')[0] ?? '';
  const query = {
    run: runs.filter((run) => !hidden.has(run)),
    ...((kind === 'curve' || kind === 'seed_curve') && { metric: metrics[0], source: [...source] }),
    ...(panel !== undefined && { panel }),
    x,
    points,
    ...(zoom && { x_from: Math.max(0, zoom[0]), x_to: zoom[1] }),
    ...smoothingParameters(smoothing),
    ...(kind === 'seed_curve' && spread),
    ...(environment !== undefined && { environment }),
    ...(panel === undefined && styles),
    // Each run keeps its style while others are hidden, without a band that the chart has not.
    ...(hidden.size > 0 && {
      style: runs.flatMap((run, at) => (hidden.has(run) ? [] : [styles?.style?.[at] ?? at])),
      ...((kind === 'learning_curve' || kind === 'curve') && !hasBands && { band: 'none' }),
    }),
  };
  return sourceAt(named, `/api/v1/figures/${kind}`, query, ({ data, layout }) => {
    const scaled = log ? onLogScale(layout) : layout;
    const xaxis = { ...scaled.xaxis, ...(zoom && { range: [...zoom], autorange: false }) };
    return {
      data,
      layout: {
        ...scaled,
        xaxis,
        yaxis: { ...scaled.yaxis, ...yAxis(data, zoom, log) },
        annotations: [...(scaled.annotations ?? []), ...outsideMarks(data, zoom, log)],
      },
    };
  });
}
