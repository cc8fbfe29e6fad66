import type { PanelKind } from '../kinds';
import { ScoresBody, scoresPath } from '../ScoresBody';

export const kind: PanelKind = {
  label: 'Bars',
  order: 30,
  fields: [],
  size: { columns: 4, height: 228 },
  titleOf: () => 'Score by config',
  sourceOf: (_panel, page) => scoresPath(page, { kind: 'bars' }),
  Body: (props) => <ScoresBody {...props} wanted={{ kind: 'bars' }} />,
};
