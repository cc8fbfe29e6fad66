import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { type Answer, type Figure, wholeFigure } from './tails';

export type MediaSeries = components['schemas']['MediaSeries'];
export type Table = { columns: string[]; rows: (string | number | boolean | null)[][] };

/** The histograms, images and tables of a run. */
export const mediaQuery = (run: string) =>
  queryOptions({
    queryKey: keys.runResource(run, 'media'),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/runs/{run_id}/media', { params: { path: { run_id: run } }, signal })),
    meta: { slow: true },
  });

/** What is known of an image or a table. */
export const mediaItemQuery = (id: string) =>
  queryOptions({
    queryKey: keys.mediaItem(id),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/media/{media_id}', { params: { path: { media_id: id } }, signal })),
    staleTime: Infinity,
  });

/** The cells of a table. */
export const tableQuery = (id: string) =>
  queryOptions({
    queryKey: keys.mediaItem(id, 'file'),
    queryFn: async ({ signal }): Promise<Table> =>
      (await unwrap<unknown>(
        api.GET('/api/v1/media/{media_id}/file', { params: { path: { media_id: id } }, signal }),
      )) as Table,
    staleTime: Infinity,
  });

type Look = { theme: 'light' | 'dark'; width: number | undefined };

const sized = ({ theme, width }: Look) => ({
  theme,
  embedded: true,
  ...(width !== undefined && { width }),
});

/** The histograms of a metric over training; `n` of them, so that a new one is drawn. */
export const distributionQuery = (run: string, metric: string, n: number, look: Look) =>
  queryOptions({
    queryKey: keys.figure('distribution', run, metric, n, look),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run, metric, ...sized(look) };
      return wholeFigure(
        (await unwrap<unknown>(
          api.GET('/api/v1/figures/distribution', { params: { query }, signal }),
        )) as Answer,
      );
    },
    placeholderData: (previous) => previous,
    enabled: look.width !== undefined,
    staleTime: 60_000,
    gcTime: 30_000,
    structuralSharing: false,
  });

/** The histogram of a metric at an agent step that has one. */
export const histogramQuery = (run: string, metric: string, agentSteps: number, look: Look) =>
  queryOptions({
    queryKey: keys.figure('histogram', run, metric, agentSteps, look),
    queryFn: async ({ signal }): Promise<Figure> => {
      const query = { run, metric, agent_steps: agentSteps, ...sized(look) };
      return wholeFigure(
        (await unwrap<unknown>(
          api.GET('/api/v1/figures/histogram', { params: { query }, signal }),
        )) as Answer,
      );
    },
    placeholderData: (previous) => previous,
    enabled: look.width !== undefined,
    staleTime: 60_000,
    gcTime: 30_000,
    structuralSharing: false,
  });
