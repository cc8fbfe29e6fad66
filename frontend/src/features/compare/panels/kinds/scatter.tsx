import { useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { groupsOf, scatterQuery, type Score } from '@/api/figures';
import { type CurveViewState, useCurveView } from '@/components/chart/curveView';
import { Scatter } from '@/components/chart/Scatter';
import { styleParameters } from '@/components/chart/seriesStyles';
import { Empty, Problem } from '@/components/feedback';
import { differing, mostTelling } from '../../ScoreScatter';
import type { Panel } from '@/components/run/panels';
import type { BodyProps, PanelKind, PanelPage } from '../kinds';
import { scoreName, settingName } from '../words';

/** The scores of the visible runs, each in its style or that of its group. */
function requestOf(panel: Panel, page: PanelPage, curves: Pick<CurveViewState, 'styles'>) {
  const { visible, grouped, styles } = page;
  const y: Score = panel.score ?? 'score';
  return {
    runs: visible.map(({ id }) => id),
    x: panel.setting ?? mostTelling(visible, differing(visible), y) ?? '',
    y,
    styles: grouped
      ? curves.styles
      : styleParameters(new Map(visible.map(({ id }) => [id, styles.get(id) ?? 0]))),
    grouped,
  };
}

function Body({ panel, page, height }: BodyProps) {
  const theme = useComputedColorScheme('light');
  const curves = useCurveView();
  const [failed, setFailed] = useState<unknown>(null);
  const { visible, titles } = page;
  const request = useMemo(() => requestOf(panel, page, curves), [panel, page, curves]);
  const { x, y } = request;
  const version = visible.map((run) => `${run[y]}`).join(' ');
  const { data, error, refetch } = useQuery(scatterQuery({ ...request, theme }, version));
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
  sourceOf: (...shown) => {
    const { runs, x, y, styles, grouped } = requestOf(...shown);
    return ['scatter', { run: runs, x, y, ...styles, ...groupsOf(grouped) }];
  },
  Body,
};
