import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { StyleParameters } from './figures';
import type { components } from './generated';
import { keys } from './keys';
import { type Axes, rangeParameters, smoothingParameters, type Spread } from './series';
import { type Answer, type Figure, wholeFigure } from './tails';

export type LinesRequest = {
  runs: readonly string[];
  metrics: readonly string[];
  formulas: readonly string[];
  /** The metric over which they are drawn; undefined for the axes' own x. */
  xMetric: string | undefined;
  axes: Axes;
  /** What is drawn of groups of seeds; undefined for runs. */
  spread: Spread | undefined;
  styles: StyleParameters | undefined;
  environment: string | undefined;
};

/** The parameters of a figure of metrics and formulas. */
export function linesParameters(request: LinesRequest) {
  const { runs, metrics, formulas, xMetric, axes, spread, styles, environment } = request;
  const { x, smoothing, zoom, points } = axes;
  return {
    run: [...runs],
    metric: [...metrics],
    formula: [...formulas],
    ...(xMetric === undefined ? { x, ...rangeParameters(zoom, points) } : { x_metric: xMetric, points }),
    ...smoothingParameters(smoothing),
    ...(spread && { group_by: 'seed' as const, ...spread }),
    ...styles,
    ...(environment !== undefined && { environment }),
  };
}

type Missing = components['schemas']['LinesOut']['missing'];
export type LinesFigure = Figure & { missing: Missing };

/** What may be names of metrics in formulas, of which only the part before the first slash matters to events. */
const namesIn = (formulas: readonly string[]): string[] =>
  formulas.flatMap((formula) => formula.match(/[\p{L}_][\p{L}\p{N}_.]*(?:\/[\p{L}\p{N}_.]+)*/gu) ?? []);

/** Several metrics and formulas of runs or groups. */
export const linesQuery = (request: LinesRequest, theme: 'light' | 'dark') => {
  const { runs, metrics, formulas, xMetric } = request;
  const followed = [...metrics, ...namesIn(formulas), ...(xMetric === undefined ? [] : [xMetric])];
  return queryOptions({
    queryKey: keys.series(runs, followed, 'lines', request, theme),
    queryFn: async ({ signal }): Promise<LinesFigure> => {
      const query = { ...linesParameters(request), theme, embedded: true };
      // OpenAPI types plotly's data and layout as plain objects.
      const answer = (await unwrap<unknown>(
        api.GET('/api/v1/figures/lines', { params: { query }, signal }),
      )) as Answer & { missing: Missing };
      return { ...wholeFigure(answer), missing: answer.missing };
    },
    structuralSharing: false,
    placeholderData: keepPreviousData,
    enabled: runs.length > 0,
  });
};

export type ScoresRequest = {
  kind: 'bars' | 'strips' | 'heatmap' | 'importance';
  runs: readonly string[];
  /** Needed where the runs are of several. */
  environment: string | undefined;
  setting: string | undefined;
  otherSetting: string | undefined;
  score: 'training' | 'evaluation';
  at: 'common' | 'end';
  protocol: string | undefined;
  groupStyles: readonly string[];
};

export function scoresParameters(request: ScoresRequest) {
  const { kind, runs, environment, setting, otherSetting, score, at, protocol, groupStyles } = request;
  return {
    kind,
    run: [...runs],
    score,
    at,
    ...(environment !== undefined && { environment }),
    ...(setting !== undefined && { setting }),
    ...(otherSetting !== undefined && { other_setting: otherSetting }),
    ...(protocol !== undefined && { protocol }),
    ...(groupStyles.length > 0 && { group_style: [...groupStyles] }),
  };
}

type ScoresOut = components['schemas']['ScoresOut'];
export type ScoresFigure = Figure & Pick<ScoresOut, 'notes'>;

/**
 * The scores of configs.
 *
 * @param version changes whenever a score has changed.
 */
export const scoresFigureQuery = (request: ScoresRequest, theme: 'light' | 'dark', version: string) =>
  queryOptions({
    queryKey: keys.figure('scores', request, theme, version),
    queryFn: async ({ signal }): Promise<ScoresFigure> => {
      const query = { ...scoresParameters(request), theme, embedded: true };
      const answer = (await unwrap<unknown>(
        api.GET('/api/v1/figures/scores', { params: { query }, signal }),
      )) as Answer & Pick<ScoresOut, 'notes'>;
      return { ...wholeFigure(answer), notes: answer.notes };
    },
    staleTime: Infinity,
    gcTime: 30_000,
    structuralSharing: false,
    placeholderData: keepPreviousData,
    enabled: request.runs.length > 0,
  });
