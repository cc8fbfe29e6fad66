import { useMemo } from 'react';
import classes from './launch.module.css';
import { rawOf, type Draft } from './draft';
import { SettingField } from '@/components/settings/SettingField';
import { groupBy } from '@/lib/group';
import { groupTitle, isChanged, type Raw, type Setting } from '@/lib/schema';

type Props = {
  settings: readonly Setting[];
  draft: Draft;
  /** What the service said, by path. */
  refusals: ReadonlyMap<string, string>;
  onChange: (path: string, raw: Raw) => void;
  onReset: (path: string) => void;
};

/** Every setting of the algorithm and the world, grouped as their specs group them. */
export function SettingsPanel({ settings, draft, refusals, onChange, onReset }: Props) {
  const groups = useMemo(() => [...groupBy(settings, ({ group }) => group)], [settings]);

  return groups.map(([group, fields]) => {
    const changed = fields.filter((setting) => isChanged(setting, rawOf(draft, setting))).length;
    // What is said of a whole section is told once, at its first group.
    const refusal = fields
      .filter((setting) => setting === settings.find(({ section }) => section === setting.section))
      .map(({ section }) => refusals.get(section))
      .find(Boolean);
    return (
      <section
        key={group}
        className={`panel ${classes.block}`}
        aria-label={groupTitle(group)}
        data-fault={refusal ? true : undefined}
      >
        <header className="row">
          <h2 className="section-title">{groupTitle(group)}</h2>
          {changed > 0 && <span className="muted">{changed} changed</span>}
          {refusal && (
            <span role="alert" className={classes.problem}>
              {refusal}
            </span>
          )}
        </header>
        <div className={classes.fields}>
          {fields.map((setting) => (
            <SettingField
              key={setting.path}
              setting={setting}
              raw={rawOf(draft, setting)}
              refusal={refusals.get(setting.path)}
              onChange={onChange}
              onReset={onReset}
            />
          ))}
        </div>
      </section>
    );
  });
}
