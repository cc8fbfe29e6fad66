import { keepPreviousData, queryOptions, type QueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import { fetchFigure } from './figureBatch';
import type { components } from './generated';
import { keys } from './keys';
import { type Axes, rangeParameters, smoothingParameters, type Spread } from './series';
import { type Answer, type Figure, wholeFigure, withTails } from './tails';

/** The parameters of figures for the styles of runs, in their order, and of groups. */
export type StyleParameters = { style?: number[]; group_style?: string[] };

export type FigureRequest = {
  runs: readonly string[];
  axes: Axes;
  theme: 'light' | 'dark';
  /** A metric, or a diagnostics panel of one run; without either, the learning curve. */
  metric?: string;
  panel?: string;
  /** The metrics that it shows. */
  metrics: readonly string[];
  /** The return metrics of its runs: with other ones, nothing that is drawn stays. */
  scoredBy?: string | null | undefined;
  source?: readonly string[];
  /** Aggregate the runs of a group into one curve. */
  spread?: Spread | undefined;
  /** Draws the runs of one environment alone, in the styles that they have among all of them. */
  environment?: string | undefined;
  /** The styles of its series, unless they follow from the order of the series. */
  styles?: StyleParameters | undefined;
};

/** What the service calls a figure. */
export function nameOf({ metric, panel, metrics, spread }: FigureRequest): string {
  if (spread) return `seed_curve:${metrics[0] ?? ''}`;
  if (panel !== undefined) return `diagnostic:${panel}`;
  return metric === undefined ? 'learning_curve' : `curve:${metric}`;
}

/** Which marks, such as checkpoints, a figure shows. */
export type MarksVersion = {
  /** Changes whenever there may be marks that a user waits for. */
  version: string;
  /** Changes now and then while the run trains: new marks come with its next points. */
  period: number;
};

/** How often, in training time, a figure may have new checkpoints. */
export const MARKS_INTERVAL_S = 20;

const NO_MARKS: MarksVersion = { version: '', period: 0 };

/** A figure, and the marks that it shows. */
export type DrawnFigure = Figure & { marks: MarksVersion };

/** A figure over training; a refetch transfers only what is new. */
export const figureQuery = (client: QueryClient, request: FigureRequest, marks = NO_MARKS) => {
  const { runs, axes, theme, metrics, source = [], spread, environment, styles, scoredBy } = request;
  const { x, smoothing, zoom, points } = axes;
  const name = nameOf(request);
  const queryKey = keys.series(
    runs,
    metrics,
    name,
    source,
    axes,
    theme,
    spread,
    styles,
    environment,
    scoredBy,
  );
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<DrawnFigure> => {
      const query = {
        run: [...runs],
        figure: [name],
        source: [...source],
        x,
        theme,
        embedded: true,
        ...rangeParameters(zoom, points),
        ...smoothingParameters(smoothing),
        ...spread,
        ...styles,
        ...(environment !== undefined && { environment }),
      };
      const previous = client.getQueryData<DrawnFigure>(queryKey);
      if (previous) {
        const had = {
          since_revision: [...previous.revisions],
          had_scale: [...previous.scales],
          layout: previous.marks.version !== marks.version || previous.marks.period !== marks.period,
        };
        const figure = withTails(previous, await fetchFigure({ ...query, ...had }, signal));
        if (figure) return { ...figure, marks };
      }
      return { ...wholeFigure(await fetchFigure(query, signal)), marks };
    },
    // Unchanged traces stay the same; a deep comparison of all points would be wasted.
    structuralSharing: false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });
};

export type Score = 'score' | 'best_return';

/** The parameter for figures of runs in the styles of their groups. */
export const groupsOf = (grouped = false) => (grouped ? { group_by: 'seed' as const } : {});

type ScatterRequest = {
  runs: readonly string[];
  x: string;
  y: Score;
  theme: 'light' | 'dark';
  /** The styles of the runs, unless they follow from the order of the runs. */
  styles?: StyleParameters | undefined;
  /** Draws each run in the style of its group. */
  grouped?: boolean | undefined;
};

/**
 * A score of runs against one of their settings.
 *
 * @param version changes whenever a score has changed.
 */
export const scatterQuery = ({ runs, x, y, theme, styles, grouped }: ScatterRequest, version: string) =>
  queryOptions({
    queryKey: keys.figure('scatter', runs, x, y, theme, version, styles, grouped),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run: [...runs], x, y, theme, ...styles, ...groupsOf(grouped) };
      // OpenAPI types plotly's data and layout as plain objects.
      return wholeFigure(
        (await unwrap<unknown>(api.GET('/api/v1/figures/scatter', { params: { query }, signal }))) as Answer,
      );
    },
    staleTime: Infinity,
    enabled: runs.length > 0 && x !== '',
    gcTime: 30_000,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });

/** The styles of runs and groups. */
export const paletteQuery = queryOptions({
  queryKey: keys.palette(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/figures/palette', { signal })),
  staleTime: Infinity,
  gcTime: Infinity,
});

export type Panel = components['schemas']['PanelOut'];

/** The diagnostics panels for which the run has reported metrics. */
export const panelsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'metrics', 'panels'),
    meta: { slow: true },
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/figures/diagnostics', { params: { query: { run } }, signal }))).items,
  });
