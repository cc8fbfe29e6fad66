import { ConfigDiffTable } from '../../Tables';
import type { PanelKind } from '../kinds';
import classes from '../panels.module.css';

export const kind: PanelKind = {
  label: 'Config diff',
  order: 90,
  fields: [],
  size: { columns: 6, height: 228 },
  titleOf: () => 'Config diff',
  Body: ({ panel, page, height }) => (
    <div className={classes.scroll} style={{ height }}>
      <ConfigDiffTable
        runs={page.visible}
        label={`Panel: ${panel.title ?? 'Config diff'}`}
        titles={page.titles}
      />
    </div>
  ),
};
