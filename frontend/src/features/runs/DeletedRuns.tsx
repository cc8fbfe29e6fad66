import { Checkbox } from '@mantine/core';
import { useState } from 'react';
import { useNames } from '@/api/names';
import { restoreRuns, useRunMutation, type DeletedRun } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { LoadingButton } from '@/components/controls';
import { PermittedButton, useDenied } from '@/components/permission';
import { StateBadge } from '@/components/run/StateBadge';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Name, RelativeTime, Score } from '@/components/text';
import { showToast } from '@/components/toasts';
import { formatCoarseDuration, formatExact, plural } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import classes from './runs.module.css';

/** Deleted runs, to be restored one by one or together. */
export function DeletedRuns({ runs, total }: { runs: readonly DeletedRun[]; total: number }) {
  const denied = useDenied();
  const names = useNames(runs);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const selected = runs.filter(({ id }) => chosen.has(id));
  const all = selected.length === runs.length;
  const restore = useRunMutation(async (ids: readonly string[]) => {
    const items = await restoreRuns(ids);
    const n = items.filter(({ done }) => done).length;
    const refused = items.length - n;
    showToast(
      `Restored ${plural(n, 'run')}${refused > 0 ? `; ${plural(refused, 'run')} could not be restored` : ''}.`,
    );
    setChosen(new Set());
  });
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const button = (label: string, name: string, ids: readonly string[], variant: string) =>
    denied === undefined ? (
      <LoadingButton
        variant={variant}
        aria-label={name}
        loading={restore.isPending && restore.variables.join() === ids.join()}
        onClick={() => restore.mutate(ids)}
      >
        {label}
      </LoadingButton>
    ) : (
      <PermittedButton variant={variant} aria-label={name} denied={denied}>
        {label}
      </PermittedButton>
    );
  return (
    <>
      <div className="row wrap">
        <span className="grow muted" role="status">
          {plural(total, 'run')}
        </span>
        {selected.length > 0 &&
          button(
            `Restore ${plural(selected.length, 'run')}`,
            `Restore ${plural(selected.length, 'run')}`,
            selected.map(({ id }) => id),
            'filled',
          )}
      </div>
      {restore.isError && <Problem error={restore.error} />}
      <ScrollPanel label="Deleted runs">
        <table className={`grid ${classes.deleted}`}>
          <thead>
            <tr>
              <th>
                <Checkbox
                  size="xs"
                  aria-label="Select all loaded runs"
                  checked={all}
                  indeterminate={!all && selected.length > 0}
                  onChange={() => setChosen(new Set(all ? [] : runs.map(({ id }) => id)))}
                />
              </th>
              <th>Name {names.shared && <span className="muted">{names.shared}</span>}</th>
              <th className="wide">State</th>
              <th className="right wide">Score</th>
              <th className="wide">Deleted</th>
              <th>Time left</th>
              <th className="actions">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <tr key={run.id}>
                <td>
                  <Checkbox
                    size="xs"
                    aria-label={`Select ${names.label(run)}`}
                    checked={chosen.has(run.id)}
                    onChange={() => toggle(run.id)}
                  />
                </td>
                <td className={classes.deletedName}>
                  <Name name={names.of(run)} title={run.name} />
                </td>
                <td className="wide">
                  <StateBadge state={run.state} />
                </td>
                <td className="right wide">
                  <Score value={run.score} />
                </td>
                <td className="nowrap wide">
                  <RelativeTime at={run.deleted_at} />
                </td>
                <td className="nowrap">
                  <Left until={run.restorable_until} />
                </td>
                <td className="actions">
                  {button('Restore', `Restore ${names.label(run)}`, [run.id], 'default')}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
    </>
  );
}

/** How long a run can still be restored. */
function Left({ until }: { until: string }) {
  const left_s = (new Date(until).getTime() - useNow()) / 1000;
  return (
    <time dateTime={until} title={formatExact(until)}>
      {left_s > 0 ? formatCoarseDuration(left_s) : 'being deleted'}
    </time>
  );
}
