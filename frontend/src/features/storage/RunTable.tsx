import { Link } from '@tanstack/react-router';
import type { RunStorage } from '@/api/storage';
import { StateBadge } from '@/components/run/StateBadge';
import { ScrollPanel } from '@/components/ScrollPanel';
import { TruncatedName } from '@/components/text';
import { DASH, formatBytes } from '@/lib/format';
import type { RunState } from '@/lib/run';
import classes from './storage.module.css';

/** The runs that take the most space, the largest first. */
export function RunTable({ runs }: { runs: readonly RunStorage[] }) {
  return (
    <ScrollPanel label="Largest runs">
      <table className="grid">
        <thead>
          <tr>
            <th>Run</th>
            <th className="right">Total</th>
            <th className="right">Checkpoints</th>
            <th className="right">Replays</th>
            <th className="right">Videos</th>
            <th className="right">Event logs</th>
            <th>State</th>
            <th>Group</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run_id}>
              <td className={classes.run}>
                <Link to="/runs/$runId" params={{ runId: run.run_id }} aria-label={run.name}>
                  <TruncatedName name={run.name} lines={2} />
                </Link>
              </td>
              <td className="right num nowrap">
                <b>{formatBytes(run.total)}</b>
              </td>
              {[run.checkpoints, run.replays, run.videos, run.event_logs].map((n_bytes, k) => (
                <td key={k} className="right num nowrap">
                  {n_bytes === 0 ? DASH : formatBytes(n_bytes)}
                </td>
              ))}
              <td>
                <StateBadge state={run.state as RunState} />
              </td>
              <td className={classes.name}>
                {run.group ? <TruncatedName name={run.group} lines={2} /> : DASH}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
