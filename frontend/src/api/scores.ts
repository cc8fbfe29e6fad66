import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

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
