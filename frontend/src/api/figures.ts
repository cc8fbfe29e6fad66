import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { Data, Layout } from 'plotly.js';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { type Axes, smoothingParameters, type Spread } from './series';

export type Figure = { data: Data[]; layout: Partial<Layout> };

export type FigureRequest = {
  runs: readonly string[];
  axes: Axes;
  theme: 'light' | 'dark';
  /** A metric, or a diagnostics panel of one run; without either, the learning curve. */
  metric?: string;
  panel?: string;
  source?: readonly string[];
  /** Aggregate the runs of a group into one curve. */
  spread?: Spread | undefined;
};

/**
 * A figure's layout and traces; the data of series come from `/series`.
 *
 * @param version changes whenever the figure has to be fetched again.
 */
export const figureQuery = (request: FigureRequest, version = '') => {
  const { runs, axes, theme, metric, panel, source = [], spread } = request;
  const { x, smoothing, points } = axes;
  return queryOptions({
    queryKey: keys.figure(runs, metric, panel, x, smoothing, theme, source, spread, version),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run: [...runs], x, ...smoothingParameters(smoothing), points, theme };
      const figure = spread
        ? api.GET('/api/v1/figures/seed_curve', {
            params: { query: { ...query, ...spread, ...(metric ? { metric } : {}), source: [...source] } },
            signal,
          })
        : panel
          ? api.GET('/api/v1/figures/diagnostic', {
              params: { query: { ...query, run: runs[0] ?? '', panel } },
              signal,
            })
          : metric
            ? api.GET('/api/v1/figures/curve', {
                params: { query: { ...query, metric, source: [...source] } },
                signal,
              })
            : api.GET('/api/v1/figures/learning_curve', { params: { query }, signal });
      // OpenAPI types plotly's data and layout as plain objects.
      return (await unwrap<unknown>(figure)) as Figure;
    },
    staleTime: Infinity,
    enabled: runs.length > 0,
    gcTime: 30_000,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });
};

export type Score = 'score' | 'best_return';

type ScatterRequest = { runs: readonly string[]; x: string; y: Score; theme: 'light' | 'dark' };

/**
 * A score of runs against one of their settings.
 *
 * @param version changes whenever a score has changed.
 */
export const scatterQuery = ({ runs, x, y, theme }: ScatterRequest, version: string) =>
  queryOptions({
    queryKey: keys.figure('scatter', runs, x, y, theme, version),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run: [...runs], x, y, theme };
      // OpenAPI types plotly's data and layout as plain objects.
      return (await unwrap<unknown>(
        api.GET('/api/v1/figures/scatter', { params: { query }, signal }),
      )) as Figure;
    },
    staleTime: Infinity,
    enabled: runs.length > 0 && x !== '',
    gcTime: 30_000,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });

/** The colours and dashes of runs and groups. */
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
    queryKey: keys.runResource(run, 'panels'),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/figures/diagnostics', { params: { query: { run } }, signal }))).items,
  });
