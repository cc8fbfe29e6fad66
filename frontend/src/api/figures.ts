import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { Data, Layout } from 'plotly.js';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';
import type { XAxis } from './series';

export type Figure = { data: Data[]; layout: Partial<Layout> };

export type FigureRequest = {
  runs: readonly string[];
  x: XAxis;
  smooth: number;
  points: number;
  theme: 'light' | 'dark';
  /** Any metric, or a panel of one run's internals; without either, the learning curve. */
  metric?: string;
  panel?: string;
  /** Runs that differ in their seed alone as one curve. */
  grouped?: boolean;
};

/**
 * A figure as the service draws it, without the numbers of series, which come from `/series`.
 * `version` is whatever changes when the rest of it does.
 */
export const figureQuery = (request: FigureRequest, version = '') => {
  const { runs, x, smooth, points, theme, metric, panel, grouped = false } = request;
  return queryOptions({
    queryKey: keys.figure(runs, metric, panel, x, smooth, points, theme, grouped, version),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run: [...runs], x, smooth, points, theme };
      const figure = grouped
        ? api.GET('/api/v1/figures/seed_curve', { params: { query }, signal })
        : panel
          ? api.GET('/api/v1/figures/internal', {
              params: { query: { run: runs[0] ?? '', panel, x, smooth, points, theme } },
              signal,
            })
          : metric
            ? api.GET('/api/v1/figures/curve', {
                params: { query: { ...query, metric, source: ['*'] } },
                signal,
              })
            : api.GET('/api/v1/figures/learning_curve', { params: { query }, signal });
      // The document says plotly's data and layout are objects; plotly's types say which.
      return (await take<unknown>(figure)) as Figure;
    },
    staleTime: Infinity,
    enabled: runs.length > 0,
    gcTime: 30_000,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });
};

export type Panel = components['schemas']['PanelOut'];

/** What a run's method is made of, as far as it has been measured. */
export const panelsQuery = (run: string) =>
  queryOptions({
    queryKey: keys.ofRun(run, 'panels'),
    queryFn: async ({ signal }) =>
      (await take(api.GET('/api/v1/figures/internals', { params: { query: { run } }, signal }))).items,
  });
