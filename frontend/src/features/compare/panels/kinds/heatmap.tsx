import { Empty } from '@/components/feedback';
import { differing, mostTelling } from '../../ScoreScatter';
import { Heatmap } from '../Heatmap';
import type { BodyProps, PanelKind } from '../kinds';
import { ScoresBody } from '../ScoresBody';
import { settingName } from '../words';

/** The score over two settings: those of the panel, else those that explain most. */
function Body(props: BodyProps) {
  const { panel, page } = props;
  const options = differing(page.compared).filter((path) => path !== 'seed');
  const [first = mostTelling(page.compared, options, 'score')] = panel.settings ?? [];
  const rest = options.filter((path) => path !== first);
  const second = panel.settings?.[1] ?? mostTelling(page.compared, rest, 'score');
  if (first === undefined || second === undefined)
    return <Empty>A heat map needs two settings in which runs differ.</Empty>;
  return (
    <ScoresBody
      {...props}
      wanted={{ kind: 'heatmap', setting: first, otherSetting: second }}
      draw={(figure, height) => (
        <Heatmap
          figure={figure}
          height={height}
          x={settingName(first, page.titles)}
          y={settingName(second, page.titles)}
        />
      )}
    />
  );
}

export const kind: PanelKind = {
  label: 'Heat map',
  order: 50,
  fields: ['settings'],
  maxSettings: 2,
  size: { columns: 4, height: 260 },
  titleOf: ({ settings = [] }, titles) =>
    settings.length === 2
      ? `Score by ${settings.map((path) => settingName(path, titles)).join(' and ')}`
      : 'Score by two settings',
  Body,
};
