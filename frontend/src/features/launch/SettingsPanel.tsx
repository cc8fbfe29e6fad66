import { useMemo } from 'react';
import classes from './launch.module.css';
import { rawOf, type Draft } from './draft';
import { SettingField } from '@/components/settings/SettingField';
import { groupBy } from '@/lib/group';
import { isChanged, type Raw, type Setting } from '@/lib/schema';

type Props = {
  settings: readonly Setting[];
  draft: Draft;
  /** What the service said, by path. */
  refusals: ReadonlyMap<string, string>;
  onChange: (path: string, raw: Raw) => void;
  onReset: (path: string) => void;
};

const title = (group: string): string => group.charAt(0).toUpperCase() + group.slice(1);

/** Every setting of the algorithm and the world, grouped as their specs group them. */
export function SettingsPanel({ settings, draft, refusals, onChange, onReset }: Props) {
  const groups = useMemo(() => [...groupBy(settings, ({ group }) => group)], [settings]);

  return groups.map(([group, fields]) => {
    const changed = fields.filter((setting) => isChanged(setting, rawOf(draft, setting))).length;
    const refusal = fields[0] && refusals.get(fields[0].section);
    return (
      <section key={group} className={`panel ${classes.block}`} aria-label={title(group)}>
        <header className="row">
          <h2 className="section-title">{title(group)}</h2>
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
