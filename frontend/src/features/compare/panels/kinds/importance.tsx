import type { PanelKind } from '../kinds';
import { ScoresBody, scoresPath } from '../ScoresBody';

export const kind: PanelKind = {
  label: 'Importance of settings',
  order: 60,
  fields: [],
  size: { columns: 4, height: 228 },
  titleOf: () => 'Which setting matters',
  sourceOf: (_panel, page) => scoresPath(page, { kind: 'importance' }),
  Body: (props) => <ScoresBody {...props} wanted={{ kind: 'importance' }} />,
};
