import { useMemo } from 'react';
import { useNames } from '@/api/names';
import type { RunStorage } from '@/api/storage';
import { RunLink } from '@/components/run/RunLink';
import { StateBadge } from '@/components/run/StateBadge';
import { ScrollPanel } from '@/components/ScrollPanel';
import { DASH, formatBytes } from '@/lib/format';
import type { RunState } from '@/lib/run';
import classes from './storage.module.css';

/** The runs that take the most space, the largest first. */
export function RunTable({ runs }: { runs: readonly RunStorage[] }) {
  const named = useMemo(() => runs.map(({ run_id, name }) => ({ id: run_id, name })), [runs]);
  const names = useNames(named);
  return (
    <ScrollPanel label="Largest runs">
      <table className="grid">
        <thead>
          <tr>
            <th>Run {names.shared && <span className="muted">{names.shared}</span>}</th>
            <th className="right">Total</th>
            <th className="right">Checkpoints</th>
            <th className="right">Replays</th>
            <th className="right">Videos</th>
            <th className="right">Images, tables</th>
            <th className="right">Event logs</th>
            <th>State</th>
            <th>Group</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run_id}>
              <td className={classes.run}>
                <RunLink run={{ id: run.run_id, name: run.name }} names={names} />
              </td>
              <td className="right num nowrap">
                <b>{formatBytes(run.total)}</b>
              </td>
              {[run.checkpoints, run.replays, run.videos, run.media, run.event_logs].map((n_bytes, k) => (
                <td key={k} className="right num nowrap">
                  {n_bytes === 0 ? DASH : formatBytes(n_bytes)}
                </td>
              ))}
              <td>
                <StateBadge state={run.state as RunState} />
              </td>
              <td className={classes.name}>
                {run.group ? <span className="whole">{run.group}</span> : DASH}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
