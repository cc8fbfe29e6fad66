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

/** Every run and evaluation may change a table of scores, which is no cheap request: it follows at an interval. */
const REFETCH_MS = 30_000;

/** The best score of each algorithm in each environment, beside published ones. */
export const scoresQuery = (request: ScoresRequest) =>
  queryOptions({
    queryKey: keys.scores(request),
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/scores', { params: { query: request }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_MS,
  });

type Drawn = Omit<components['schemas']['ScoresFigure'], 'figure'> & { figure: Figure };
type Shown = { theme: 'light' | 'dark'; width: number };

/** The performance profiles of the algorithms of a table of scores. */
export async function fetchProfile(
  request: ScoresRequest,
  shown: Shown,
  signal: AbortSignal,
): Promise<Drawn> {
  const params = { path: { figure_id: 'profile' as const }, query: { ...request, ...shown } };
  // OpenAPI types plotly's data and layout as plain objects, and files as text.
  const drawn = (await unwrap<unknown>(
    api.GET('/api/v1/scores/figures/{figure_id}', { params, signal }),
  )) as Omit<Drawn, 'figure'> & { figure: Answer };
  return { ...drawn, figure: wholeFigure(drawn.figure) };
}

/** The performance profiles as a page shows them. */
export const profileQuery = (request: ScoresRequest, shown: Shown) =>
  queryOptions({
    queryKey: keys.scores({ figure: 'profile', ...request, ...shown }),
    queryFn: ({ signal }) => fetchProfile(request, shown, signal),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_MS,
    structuralSharing: false,
  });
