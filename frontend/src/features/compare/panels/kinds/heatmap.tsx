import { Empty } from '@/components/feedback';
import { differing, mostTelling } from '../../ScoreScatter';
import type { Panel } from '@/components/run/panels';
import { Heatmap } from '../Heatmap';
import type { BodyProps, PanelKind, PanelPage } from '../kinds';
import { ScoresBody } from '../ScoresBody';
import { settingName } from '../words';

/** The settings of a panel, else those that explain most. */
function settingsOf({ settings = [] }: Panel, { compared }: PanelPage) {
  const options = differing(compared).filter((path) => path !== 'seed');
  const setting = settings[0] ?? mostTelling(compared, options, 'score');
  const rest = options.filter((path) => path !== setting);
  return { setting, otherSetting: settings[1] ?? mostTelling(compared, rest, 'score') };
}

/** The score over two settings. */
function Body(props: BodyProps) {
  const { panel, page } = props;
  const { setting, otherSetting } = settingsOf(panel, page);
  if (setting === undefined || otherSetting === undefined)
    return <Empty>A heat map needs two settings in which runs differ.</Empty>;
  return (
    <ScoresBody
      {...props}
      wanted={{ kind: 'heatmap', setting, otherSetting }}
      draw={(figure, height) => (
        <Heatmap
          figure={figure}
          title={props.title}
          height={height}
          x={settingName(setting, page.titles)}
          y={settingName(otherSetting, page.titles)}
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
