import { useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { scatterQuery, type Score } from '@/api/figures';
import { useCurveView } from '@/components/chart/curveView';
import { Scatter } from '@/components/chart/Scatter';
import { styleParameters } from '@/components/chart/seriesStyles';
import { Empty, Problem } from '@/components/feedback';
import { differing, mostTelling } from '../../ScoreScatter';
import type { BodyProps, PanelKind } from '../kinds';
import { scoreName, settingName } from '../words';

function Body({ panel, page, height }: BodyProps) {
  const theme = useComputedColorScheme('light');
  const { styles: ofGroups } = useCurveView();
  const [failed, setFailed] = useState<unknown>(null);
  const { visible, grouped, titles, styles: styleOf } = page;
  const ofRuns = useMemo(
    () => styleParameters(new Map(visible.map(({ id }) => [id, styleOf.get(id) ?? 0]))),
    [visible, styleOf],
  );
  const styles = grouped ? ofGroups : ofRuns;
  const y: Score = panel.score ?? 'score';
  const x = panel.setting ?? mostTelling(visible, differing(visible), y) ?? '';
  const version = visible.map((run) => `${run[y]}`).join(' ');
  const request = { runs: visible.map(({ id }) => id), x, y, theme, styles, grouped };
  const { data, error, refetch } = useQuery(scatterQuery(request, version));
  if (x === '') return <Empty>These runs differ in no setting.</Empty>;
  if (visible.every((run) => run[y] === null)) return <Empty>None of these runs has a score yet.</Empty>;
  const problem = error ?? failed;
  if (problem)
    return (
      <Problem
        error={problem}
        onRetry={() => {
          setFailed(null);
          void refetch();
        }}
      />
    );
  return (
    <Scatter
      label={`${scoreName(panel)} of each run by ${settingName(x, titles)}`}
      figure={data}
      height={height}
      onFailed={setFailed}
    />
  );
}

export const kind: PanelKind = {
  label: 'Scatter plot',
  order: 20,
  fields: ['setting', 'score'],
  size: { columns: 4, height: 228 },
  titleOf: (panel, titles) =>
    panel.setting === undefined
      ? `${scoreName(panel)} by hyperparameter`
      : `${scoreName(panel)} by ${settingName(panel.setting, titles)}`,
  Body,
};
