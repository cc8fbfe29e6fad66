import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { hostSilenceQuery } from '@/api/hosts';
import type { Run } from '@/api/runs';
import { RelativeTime } from '@/components/text';
import classes from './run.module.css';

/** Shows that the host of an active run has stopped sending heartbeats. */
export function SilentHost({ run }: { run: Run }) {
  const { data } = useQuery({ ...hostSilenceQuery, enabled: run.host !== null });
  const host = data?.items.find(({ id }) => id === run.host);
  if (!host || host.alive) return null;
  return (
    <p className={classes.notice} data-kind="lost" role="status">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        Host {host.id} has not responded since <RelativeTime at={host.last_seen_at} />. The data below may be
        out of date. The run resumes from its latest checkpoint on another host once its lease expires.
      </span>
    </p>
  );
}
