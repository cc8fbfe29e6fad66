import { Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { algorithmsQuery, environmentsQuery } from '@/api/catalogue';
import type { Run, RunFields } from '@/api/runs';
import schemas from '@/lib/schemas.json';
import { Empty, Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatValue } from '@/lib/format';
import { allFields, groupTitle } from '@/lib/schema';
import { hasEnded, isExternal } from '@/lib/run';
import { ConfigChanges } from './ConfigChanges';
import { ExternalConfig } from './ExternalConfig';
import classes from './run.module.css';

/** Loaded on demand: no other part of the page needs its inputs. */
const LiveConfigDialog = lazy(() => import('./LiveConfigDialog'));

type Props = { run: Run; onlyChanged: boolean; onOnlyChanged: (only: boolean) => void };

/** The run's config beside the defaults. */
export function ConfigTab({ run, onlyChanged, onOnlyChanged }: Props) {
  const denied = useDenied();
  const [editing, setEditing] = useState(false);
  const algorithms = useQuery(algorithmsQuery);
  const environments = useQuery(environmentsQuery);
  const error = algorithms.error ?? environments.error;
  if (isExternal(run)) return <ExternalConfig run={run} />;
  if (error && !(algorithms.data && environments.data)) {
    const retry = () => void Promise.all([algorithms.refetch(), environments.refetch()]);
    return <Problem error={error} onRetry={retry} />;
  }
  const algorithm = algorithms.data?.find(({ id }) => id === run.algorithm);
  const environment = environments.data?.find(({ id }) => id === run.environment);
  if (!algorithms.data || !environments.data) return <Loading label="Loading the config" />;
  if (!algorithm || !environment) {
    return (
      <Empty>Config unavailable: the environment {run.environment} is no longer provided by any host.</Empty>
    );
  }

  const spec = run.spec as unknown as RunFields;
  const values: Record<string, Record<string, unknown>> = {
    config: spec.config,
    environment_config: spec.environment_config,
    stop: spec.stop,
  };
  const rows = allFields(algorithm, environment, schemas.StopSpec).map((field) => {
    const stored = values[field.section]?.[field.key];
    // A run from before this field existed behaved as its default does.
    const value = stored === undefined ? field.default : stored;
    return { field, value, changed: value !== field.default };
  });
  const live = rows.flatMap(({ field, value }) => (field.live ? { ...field, default: value } : []));
  const others = [
    ['Seed', run.seed],
    ['Device', spec.device],
    ['Queue', run.queue],
    ['Requested host', run.wanted_host ?? 'any'],
    ['Priority', run.priority],
    ['Group', run.group],
    ['Tags', run.tags.join(', ')],
    ['Notes', run.notes],
  ] as const;
  const shown = rows.filter(({ changed }) => changed || !onlyChanged);
  const groups = [...Map.groupBy(shown, ({ field }) => field.group)];
  return (
    <>
      <ConfigChanges run={run.id} />
      {Object.keys(run.departures).length > 0 && (
        <p role="note">
          It has not trained with this config alone:{' '}
          {Object.entries(run.departures)
            .map(([name, how]) => `${name} ${how}`)
            .join(', ')}
          . It is no seed of runs that have.
        </p>
      )}
      <div className="row wrap" style={{ marginBottom: 8 }}>
        <Switch
          size="xs"
          label="Changed values only"
          checked={onlyChanged}
          onChange={({ currentTarget }) => onOnlyChanged(currentTarget.checked)}
        />
        <span className="grow" />
        {live.length > 0 && !hasEnded(run.state) && (
          <PermittedButton denied={denied} variant="default" onClick={() => setEditing(true)}>
            Change config…
          </PermittedButton>
        )}
      </div>
      {editing && (
        <Suspense>
          <LiveConfigDialog run={run} fields={live} onClose={() => setEditing(false)} />
        </Suspense>
      )}
      <ScrollPanel label="Config" className={classes.config}>
        <table className="grid">
          <thead>
            <tr>
              <th>Hyperparameter</th>
              <th>Symbol</th>
              <th className="right">Value</th>
              <th className="right">Default</th>
              <th>Unit</th>
            </tr>
          </thead>
          {groups.map(([group, members]) => (
            <tbody key={group}>
              <GroupHeading group={group} />
              {members.map(({ field, value, changed }) => (
                <tr key={field.path} title={field.help}>
                  <td>{field.title}</td>
                  <td className="num muted">{field.symbol}</td>
                  <td
                    className="right num"
                    style={changed ? { color: 'var(--accent)', fontWeight: 600 } : undefined}
                  >
                    {formatValue(value)}
                    {changed && <span className="visually-hidden"> (changed)</span>}
                  </td>
                  <td className="right num muted">{formatValue(field.default)}</td>
                  <td className="muted">{field.unit}</td>
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
                  <td className="right num">{formatValue(value)}</td>
                  <td />
                  <td />
                </tr>
              ))}
            </tbody>
          )}
        </table>
        {shown.length === 0 && <Empty>All hyperparameters have their defaults.</Empty>}
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
