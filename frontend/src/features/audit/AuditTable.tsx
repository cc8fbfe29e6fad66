import type { AuditEntry } from '@/api/audit';
import { ScrollPanel } from '@/components/ScrollPanel';
import { DASH, formatExact } from '@/lib/format';
import classes from './audit.module.css';

/** The entries, latest first. */
export function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <ScrollPanel label="Audit trail">
      <table className="grid">
        <thead>
          <tr>
            <th>Time</th>
            <th>User</th>
            <th>Address</th>
            <th>Action</th>
            <th>Request</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td className="nowrap">
                <time dateTime={entry.time}>{formatExact(entry.time)}</time>
              </td>
              <td>{userOf(entry)}</td>
              <td className="num nowrap">{entry.address ?? DASH}</td>
              <td className={`nowrap ${entry.action.endsWith('_failed') ? classes.failed : ''}`}>
                {entry.action}
              </td>
              <td className={classes.details}>
                {Object.keys(entry.body).length === 0 ? (
                  <span className="num">{entry.path}</span>
                ) : (
                  <details>
                    <summary className="num">{entry.path}</summary>
                    <pre className="num">{JSON.stringify(entry.body, null, 2)}</pre>
                  </details>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}

/** Who acted. The name of a login that failed is only what someone typed. */
function userOf({ actor_id, actor_name }: AuditEntry): string {
  if (actor_name === null) return DASH;
  return actor_id === null ? `“${actor_name}” (not signed in)` : actor_name;
}
