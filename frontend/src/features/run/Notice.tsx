import { IconAlertTriangle, IconClock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import type { Run } from '@/api/runs';
import { whyWaiting } from '@/lib/waiting';
import classes from './run.module.css';

/** What someone should know of a run that does not simply train: why it waits, or how it failed. */
export function Notice({ run }: { run: Run }) {
  if (run.state === 'queued') return <Waiting run={run} />;
  if (run.state === 'lost') {
    return (
      <p className={classes.notice} data-kind="lost">
        <IconAlertTriangle size={16} aria-hidden="true" />
        Its host no longer answers. Everything up to its newest checkpoint is kept; it goes on from there by
        itself as soon as a host has a free slot.
      </p>
    );
  }
  if (run.state !== 'failed') return null;
  return (
    <div role="alert" className={classes.notice} data-kind="failed">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <div className="grow">
        <strong>It failed: {run.state_reason}</strong>
        <div>
          Its curves, episodes and checkpoints are kept. Resume goes on from the newest checkpoint, or begins
          anew where there is none.
        </div>
        {run.error && (
          <details>
            <summary>What the engine said</summary>
            <pre className={classes.traceback}>{run.error}</pre>
          </details>
        )}
      </div>
    </div>
  );
}

function Waiting({ run }: { run: Run }) {
  const { data } = useQuery(hostsQuery);
  return (
    <p className={classes.notice}>
      <IconClock size={16} aria-hidden="true" />
      <span>
        Waits in the queue <span className="num">{run.queue}</span>
        {data ? whyWaiting(data.items, run.queue, run.wanted_host) : '.'}
      </span>
    </p>
  );
}
