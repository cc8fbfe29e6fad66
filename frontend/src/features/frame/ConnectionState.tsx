import { Tooltip } from '@mantine/core';
import { useConnection } from '@/api/liveStore';
import { formatAgo, formatExact } from '@/lib/format';
import { useNow } from '@/lib/now';
import classes from './Frame.module.css';

/** A break this short is not worth alarming anyone. */
const STALE_MS = 10_000;

/** Whether the page keeps up: live, reconnecting, or stale since when. */
export function ConnectionState() {
  const { status, heardAt } = useConnection();
  const now = useNow();
  const stale = status === 'reconnecting' && heardAt !== null && now - heardAt > STALE_MS;
  const words = stale ? `stale since ${formatAgo(heardAt, now)}` : status;
  const hint =
    status === 'live'
      ? 'What you see is kept up to date.'
      : `The service does not answer; trying again every few seconds.${heardAt ? ` Last heard: ${formatExact(heardAt)}.` : ''}`;
  return (
    <Tooltip label={hint}>
      <span role="status" className={classes.connection} data-status={stale ? 'stale' : status}>
        <span className={classes.dot} aria-hidden="true" />
        {words}
      </span>
    </Tooltip>
  );
}
