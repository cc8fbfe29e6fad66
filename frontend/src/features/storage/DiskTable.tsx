import type { Host } from '@/api/hosts';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatBytes } from '@/lib/format';
import classes from './storage.module.css';
import { formatShare } from './KindTable';

/** The disks of the hosts' run directories, as last reported. */
export function DiskTable({ hosts }: { hosts: readonly Host[] }) {
  return (
    <ScrollPanel label="Host disks">
      <table className="grid">
        <thead>
          <tr>
            <th>Host</th>
            <th className="right">Free</th>
            <th className="right">Size</th>
            <th className="right">In use</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {hosts.map(({ id, alive, stopped_at: stopped, load }) => {
            const { disk_bytes: total, disk_free_bytes: free, disk_problem: problem } = load;
            return (
              <tr key={id}>
                <td className="nowrap">{id}</td>
                <td className="right num nowrap">{formatBytes(free)}</td>
                <td className="right num nowrap">{formatBytes(total)}</td>
                <td className="right num">
                  {total != null && free != null && formatShare(total - free, total)}
                </td>
                <td className={problem ? classes.problem : ''}>
                  {problem ??
                    (total == null
                      ? 'not reported'
                      : alive
                        ? 'ok'
                        : `host is ${stopped ? 'stopped' : 'offline'}`)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
