import type { PanelKind } from '../kinds';
import { ScoresBody, scoresPath } from '../ScoresBody';
import { settingName } from '../words';

export const kind: PanelKind = {
  label: 'Strips',
  order: 40,
  fields: ['setting'],
  size: { columns: 4, height: 228 },
  titleOf: ({ setting }, titles) =>
    setting === undefined ? 'Scores of the seeds' : `Scores of the seeds by ${settingName(setting, titles)}`,
  sourceOf: (panel, page) => scoresPath(page, { kind: 'strips', setting: panel.setting }),
  Body: (props) => <ScoresBody {...props} wanted={{ kind: 'strips', setting: props.panel.setting }} />,
};
