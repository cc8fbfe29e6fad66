import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { wholeFigure, type Answer, type Figure } from './tails';

export type Scores = components['schemas']['Scores'];
export type ScoreRow = components['schemas']['ScoreRow'];
export type ScoreCell = components['schemas']['ScoreCell'];
export type ScoreColumn = components['schemas']['ScoreColumn'];

export type ScoresRequest = { protocol?: string; column?: string[]; min_seeds?: number };

/** The best score of each algorithm in each environment, beside published ones. */
export const scoresQuery = (request: ScoresRequest) =>
  queryOptions({
    queryKey: keys.scores(request),
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/scores', { params: { query: request }, signal })),
    placeholderData: keepPreviousData,
  });

type Drawn = components['schemas']['ScoresFigure'];
type FigureRequest = ScoresRequest & { theme: 'light' | 'dark'; width: number };

/** The performance profiles of the algorithms of a table of scores. */
export const profileQuery = (request: FigureRequest) =>
  queryOptions({
    queryKey: keys.scores({ figure: 'profile', ...request }),
    queryFn: async ({ signal }): Promise<Omit<Drawn, 'figure'> & { figure: Figure }> => {
      const params = { path: { figure_id: 'profile' as const }, query: request };
      const drawn = await unwrap(api.GET('/api/v1/scores/figures/{figure_id}', { params, signal }));
      // OpenAPI types plotly's data and layout as plain objects.
      return { ...drawn, figure: wholeFigure(drawn.figure as unknown as Answer) };
    },
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });
