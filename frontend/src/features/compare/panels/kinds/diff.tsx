import { ConfigDiffTable } from '../../Tables';
import type { PanelKind } from '../kinds';
import classes from '../panels.module.css';

export const kind: PanelKind = {
  label: 'Config diff',
  order: 90,
  fields: [],
  size: { columns: 6, height: 228 },
  titleOf: () => 'Config diff',
  Body: ({ title, page, height }) => (
    <div className={classes.scroll} style={{ height }}>
      <ConfigDiffTable runs={page.visible} label={`Panel: ${title}`} titles={page.titles} />
    </div>
  ),
};
