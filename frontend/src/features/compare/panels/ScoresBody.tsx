import { NativeSelect, Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import {
  type ScoresFigure,
  scoresFigureQuery,
  scoresParameters,
  type ScoresRequest,
} from '@/api/panelFigures';
import { Problem } from '@/components/feedback';
import type { BodyProps, PanelPage, ServedPath } from './kinds';
import { ScoresPlot } from './ScoresPlot';

type Wanted = Pick<ScoresRequest, 'kind'> & {
  setting?: string | undefined;
  otherSetting?: string | undefined;
};

/** The request for scores as the verdict of the page compares them. */
const scoresRequest = (
  { compared, verdict, groupStyles }: PanelPage,
  { kind, setting, otherSetting }: Wanted,
  environment: string | undefined,
): ScoresRequest => ({
  kind,
  runs: compared.flatMap((run) =>
    environment === undefined || run.environment === environment ? run.id : [],
  ),
  environment,
  setting,
  otherSetting,
  ...verdict,
  groupStyles,
});

/** The figure as a path; of several environments, that of the first. */
export const scoresPath = (page: PanelPage, wanted: Wanted): ServedPath => {
  const environment = page.environments.length > 1 ? page.environments[0] : undefined;
  return ['scores', scoresParameters(scoresRequest(page, wanted, environment))];
};

type Props = BodyProps & {
  wanted: Wanted;
  /** Draws the figure otherwise than with the chart library. */
  draw?: (figure: ScoresFigure, height: number) => ReactNode;
};

/** A figure of scores, of one environment at a time: scores of several have no common scale. */
export function ScoresBody({ title, page, height, wanted, draw }: Props) {
  const theme = useComputedColorScheme('light');
  const [chosen, setChosen] = useState<string>();
  const { environments, compared } = page;
  const isMixed = environments.length > 1;
  const environment = isMixed
    ? chosen !== undefined && environments.includes(chosen)
      ? chosen
      : environments[0]
    : undefined;
  const version = compared.map(({ score }) => String(score)).join(' ');
  const { data, error, refetch } = useQuery(
    scoresFigureQuery(scoresRequest(page, wanted, environment), theme, version),
  );
  return (
    <>
      {isMixed && (
        <NativeSelect
          aria-label={`Environment of ${title}`}
          value={environment}
          data={[...environments]}
          onChange={({ currentTarget }) => setChosen(currentTarget.value)}
        />
      )}
      {error ? (
        <Problem error={error} onRetry={() => void refetch()} />
      ) : !data ? (
        <Skeleton height={height} radius={2} />
      ) : draw ? (
        draw(data, height)
      ) : (
        <ScoresPlot figure={data} page={page} height={height} label={title} />
      )}
      {data && data.notes.length > 0 && <div className="muted">{data.notes.join('; ')}</div>}
    </>
  );
}
