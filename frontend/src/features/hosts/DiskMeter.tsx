import type { Host } from '@/api/hosts';
import { TextLink } from '@/components/controls';
import { formatBytes } from '@/lib/format';
import { Meter } from './Meter';

/** The disk of a host's run directories, and why it claims no runs if that is the reason. */
export function DiskMeter({ load }: { load: Host['load'] }) {
  const { disk_bytes: total, disk_free_bytes: free, disk_problem: problem } = load;
  const known = total != null && free != null;
  return (
    <>
      <Meter
        label="Disk"
        value={known ? 1 - free / total : null}
        text={known ? `${formatBytes(free)} free of ${formatBytes(total)}` : ''}
      />
      {problem != null && (
        <p role="alert" style={{ gridColumn: '1 / -1', margin: 0 }}>
          Disk: {problem}{' '}
          <TextLink to="/storage" inherit>
            Show storage usage
          </TextLink>
        </p>
      )}
    </>
  );
}
