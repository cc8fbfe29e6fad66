import { Button, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { algorithmsQuery, environmentsQuery } from '@/api/catalog';
import type { Run, RunFields } from '@/api/runs';
import schemas from '@/api/schemas.json';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatSetting } from '@/lib/format';
import { groupBy } from '@/lib/group';
import { allSettings, groupTitle } from '@/lib/schema';
import { LiveSettingsDialog, SettingsChanges } from './LiveSettings';
import classes from './run.module.css';

type Props = { run: Run; onlyChanged: boolean; onOnlyChanged: (only: boolean) => void };

/** What the run was asked for, beside the defaults. */
export function SettingsTab({ run, onlyChanged, onOnlyChanged }: Props) {
  const [changing, setChanging] = useState(false);
  const algorithms = useQuery(algorithmsQuery);
  const environments = useQuery(environmentsQuery);
  const error = algorithms.error ?? environments.error;
  if (error) {
    const again = () => void Promise.all([algorithms.refetch(), environments.refetch()]);
    return <Problem error={error} onRetry={again} />;
  }
  const algorithm = algorithms.data?.find(({ id }) => id === run.algorithm);
  const world = environments.data?.find(({ id }) => id === run.environment);
  if (!algorithms.data || !environments.data) return <Loading label="Loading the settings" />;
  if (!algorithm || !world)
    return <Empty>What this run was set to cannot be told: no host here knows its world any more.</Empty>;

  const spec = run.spec as unknown as RunFields;
  const values: Record<string, Record<string, unknown>> = {
    config: spec.config,
    environment_config: spec.environment_config,
    stop: spec.stop,
  };
  const rows = allSettings(algorithm, world, schemas.StopSpec).map((setting) => {
    const own = values[setting.section]?.[setting.key];
    // A run from before there was this setting did what is its default now.
    const value = own === undefined ? setting.fallback : own;
    return { setting, value, changed: value !== setting.fallback };
  });
  const live = rows.flatMap(({ setting, value }) => (setting.live ? { ...setting, fallback: value } : []));
  const others = [
    ['Seed', run.seed],
    ['Device', spec.device],
    ['Queue', run.queue],
    ['Host asked for', run.wanted_host ?? 'any'],
    ['Priority', run.priority],
    ['Group', run.group],
    ['Tags', run.tags.join(', ')],
    ['Notes', run.notes],
  ] as const;
  const shown = rows.filter(({ changed }) => changed || !onlyChanged);
  const groups = [...groupBy(shown, ({ setting }) => setting.group)];
  return (
    <>
      <SettingsChanges run={run.id} />
      <div className="row wrap" style={{ marginBottom: 8 }}>
        <Switch
          size="xs"
          label="Only what differs from the defaults"
          checked={onlyChanged}
          onChange={({ currentTarget }) => onOnlyChanged(currentTarget.checked)}
        />
        <span className="grow" />
        {live.length > 0 && (
          <Button variant="default" onClick={() => setChanging(true)}>
            Change settings…
          </Button>
        )}
      </div>
      {changing && <LiveSettingsDialog run={run} settings={live} onClose={() => setChanging(false)} />}
      <ScrollPanel label="Settings of the run" className={classes.settings}>
        <table className="grid">
          <thead>
            <tr>
              <th>Setting</th>
              <th>Symbol</th>
              <th className="right">Value</th>
              <th className="right">Default</th>
              <th>Unit</th>
            </tr>
          </thead>
          {groups.map(([group, members]) => (
            <tbody key={group}>
              <GroupHeading group={group} />
              {members.map(({ setting, value, changed }) => (
                <tr key={setting.path} title={setting.help}>
                  <td>{setting.title}</td>
                  <td className="num muted">{setting.symbol}</td>
                  <td
                    className="right num"
                    style={changed ? { color: 'var(--accent)', fontWeight: 600 } : undefined}
                  >
                    {formatSetting(value)}
                    {changed && <span className="visually-hidden"> (changed)</span>}
                  </td>
                  <td className="right num muted">{formatSetting(setting.fallback)}</td>
                  <td className="muted">{setting.unit}</td>
                </tr>
              ))}
            </tbody>
          ))}
          {!onlyChanged && (
            <tbody>
              <GroupHeading group="run" />
              {others.map(([title, value]) => (
                <tr key={title}>
                  <td>{title}</td>
                  <td />
                  <td className="right num">{formatSetting(value)}</td>
                  <td />
                  <td />
                </tr>
              ))}
            </tbody>
          )}
        </table>
        {shown.length === 0 && <Empty>Every setting has its default.</Empty>}
      </ScrollPanel>
    </>
  );
}

const GroupHeading = ({ group }: { group: string }) => (
  <tr>
    <th colSpan={5} scope="rowgroup" className={classes.group}>
      {groupTitle(group)}
    </th>
  </tr>
);
