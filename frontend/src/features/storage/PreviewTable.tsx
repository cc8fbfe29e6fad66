import type { Policy, RetentionPreview } from '@/api/storage';
import { formatBytes, formatInteger, plural } from '@/lib/format';
import classes from './storage.module.css';

type Props = { preview: RetentionPreview; eventLogs: Policy['event_logs'] };

/** Whether clean-up would remove something that is not kept elsewhere. */
export const removesAnything = ({ checkpoints, episodes, videos, ...more }: RetentionPreview): boolean =>
  checkpoints.files + episodes.files + videos.files + more.runs_with_old_log_lines + more.audit_entries > 0;

/** What clean-up would remove with settings that are not saved yet. */
export function PreviewTable({ preview, eventLogs }: Props) {
  const { runs_checked: checked, runs_total: total } = preview;
  const rows = [
    ['Checkpoints', preview.checkpoints],
    ['Replays', preview.episodes],
    ['Videos', preview.videos],
    [eventLogs === 'remove' ? 'Event logs' : 'Event logs to compress (current size)', preview.event_logs],
  ] as const;
  const shown = rows.filter(([, { files }]) => files > 0);
  const freed = [preview.checkpoints, preview.episodes, preview.videos];
  const compressed = eventLogs !== 'remove' && preview.event_logs.files > 0;
  if (!compressed) freed.push(preview.event_logs);
  return (
    <div className={classes.preview}>
      <span>
        {total === 0
          ? 'The policy currently applies to no runs.'
          : `The policy applies to ${plural(total, 'run')}.`}
        {checked < total &&
          ` Only the oldest ${formatInteger(checked)} were checked within the time limit: more may be removed.`}
      </span>
      {shown.length === 0 && !removesAnything(preview) && <span>Nothing would be removed.</span>}
      {shown.length > 0 && (
        <table className="grid" aria-label="Space that would be freed">
          <thead>
            <tr>
              <th>Kind</th>
              <th className="right">Files</th>
              <th className="right">Size</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(([name, { files, n_bytes }]) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="right num">{formatInteger(files)}</td>
                <td className="right num nowrap">{formatBytes(n_bytes)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">{compressed ? 'Freed, excluding compressed event logs' : 'Freed'}</th>
              <td />
              <td className="right num nowrap">
                <b>{formatBytes(freed.reduce((sum, { n_bytes }) => sum + n_bytes, 0))}</b>
              </td>
            </tr>
          </tfoot>
        </table>
      )}
      {preview.runs_with_old_log_lines > 0 && (
        <span>Old log lines of {plural(preview.runs_with_old_log_lines, 'run')} would be removed.</span>
      )}
      {preview.audit_entries > 0 && (
        <span>{plural(preview.audit_entries, 'entry', 'entries')} of the audit trail would be removed.</span>
      )}
      <span className="muted">
        Removed files cannot be restored. The latest checkpoint and files needed by an engine or a requested
        evaluation are always kept.
      </span>
    </div>
  );
}
