import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { hostSilenceQuery, readinessQuery } from '@/api/hosts';
import { TextLink } from '@/components/controls';
import classes from './shell.module.css';

/** Above every page: which disks are full, what no longer happens, and what to do. */
export function DiskBanner() {
  const { data: readiness } = useQuery(readinessQuery);
  const { data: hosts } = useQuery({ ...hostSilenceQuery, enabled: readiness?.host_disks === false });
  const server = readiness && !readiness.disk ? readiness.problems : [];
  const full = hosts?.items.filter(({ load, stopped_at }) => load.disk_problem && stopped_at === null) ?? [];
  if (server.length === 0 && full.length === 0) return null;
  return (
    <div role="alert" className={classes.banner}>
      <IconAlertTriangle size={20} aria-hidden="true" />
      <div>
        {server.map((problem) => (
          <div key={problem}>
            <strong>The server cannot store anything.</strong> {problem}. Until then no change is accepted,
            and training here waits; runs continue by themselves afterwards.
          </div>
        ))}
        {full.map(({ id, load }) => (
          <div key={id}>
            <strong>The disk of host {id} is full or failing.</strong> {load.disk_problem}. Its runs may stand
            still; free some space there.
          </div>
        ))}
        <TextLink to="/settings/storage">Show storage usage</TextLink>
      </div>
    </div>
  );
}
