import type { Storage } from '@/api/storage';
import { ScrollPanel } from '@/components/ScrollPanel';
import { DASH, formatBytes, formatInteger, plural } from '@/lib/format';
import classes from './storage.module.css';

const KINDS: Readonly<Record<string, string>> = {
  checkpoints: 'Checkpoints',
  replays: 'Replays',
  videos: 'Videos',
  media: 'Images and tables',
  event_logs: 'Event logs, on all hosts',
};

/** What takes space: the files of each kind, and the database. */
export function KindTable({ storage }: { storage: Storage }) {
  const rows = [
    ...storage.kinds.map(({ kind, files, n_bytes }) => ({ name: KINDS[kind] ?? kind, files, n_bytes })),
    { name: 'Database', files: null, n_bytes: storage.database_bytes },
  ];
  const total = rows.reduce((sum, { n_bytes }) => sum + n_bytes, 0);
  return (
    <>
      <ScrollPanel label="Storage by kind">
        <table className="grid">
          <thead>
            <tr>
              <th>Kind</th>
              <th className="right">Files</th>
              <th className="right">Size</th>
              <th className="right">Share</th>
              <th className="wide" aria-hidden="true" />
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, files, n_bytes }) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="right num">{files === null ? DASH : formatInteger(files)}</td>
                <td className="right num nowrap">{formatBytes(n_bytes)}</td>
                <td className="right num">{formatShare(n_bytes, total)}</td>
                <td className={`wide ${classes.shares}`} aria-hidden="true">
                  <span className={classes.share}>
                    <span style={{ transform: `scaleX(${total === 0 ? 0 : n_bytes / total})` }} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              <td />
              <td className="right num nowrap">{formatBytes(total)}</td>
              <td />
              <td className="wide" aria-hidden="true" />
            </tr>
          </tfoot>
        </table>
      </ScrollPanel>
      {storage.removed_files > 0 && (
        <p className={`muted ${classes.note}`}>
          Excludes {plural(storage.removed_files, 'removed file')} that clean-up has not yet deleted.
        </p>
      )}
    </>
  );
}

/** A part of a whole in percent; a small part is not shown as nothing. */
export function formatShare(part: number, whole: number): string {
  if (part === 0 || whole === 0) return '0%';
  const percent = Math.round((100 * part) / whole);
  return percent === 0 ? '< 1%' : `${percent}%`;
}
