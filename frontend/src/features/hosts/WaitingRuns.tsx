import { Link } from '@tanstack/react-router';
import type { HostPage } from '@/api/hosts';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime, TruncatedName } from '@/components/text';
import { plural } from '@/lib/format';
import classes from './hosts.module.css';

/** The queued runs in the order in which hosts claim them, and why each waits. */
export function WaitingRuns({ hosts }: { hosts: HostPage }) {
  const total = Object.values(hosts.waiting).reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const more = total - hosts.waiting_runs.length;
  return (
    <section aria-label="Waiting runs">
      <h2 className="section-title" style={{ marginBottom: 8 }}>
        {plural(total, 'run is waiting', 'runs are waiting')}
      </h2>
      <ScrollPanel label="Waiting runs">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">Position</th>
              <th>Run</th>
              <th className="right">Priority</th>
              <th>Queue</th>
              <th>Reason</th>
              <th>Queued</th>
            </tr>
          </thead>
          <tbody>
            {hosts.waiting_runs.map((run, k) => (
              <tr key={run.id}>
                <td className="right num">{k + 1}</td>
                <td className={classes.waitingName}>
                  <Link to="/runs/$runId" params={{ runId: run.id }} aria-label={run.name}>
                    <TruncatedName name={run.name} />
                  </Link>
                </td>
                <td className="right num">{run.priority}</td>
                <td className="num nowrap">
                  {run.queue}
                  {run.wanted_host !== null && ` on ${run.wanted_host}`}
                </td>
                <td className={classes.waitingReason}>{run.reason}</td>
                <td>
                  <RelativeTime at={run.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {more > 0 && (
        <p className="muted" style={{ margin: '4px 0 0' }}>
          and {plural(more, 'more run')}
        </p>
      )}
    </section>
  );
}
