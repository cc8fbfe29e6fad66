import { IconAlertTriangle, IconClock, IconRefresh } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { hostSilenceQuery } from '@/api/hosts';
import { checkpointsQuery, episodesQuery, symptomsQuery } from '@/api/runResources';
import { queueQuery, type RunDetail, type Run } from '@/api/runs';
import { HEARTBEAT_S, useSilence } from '@/components/run/silence';
import { RelativeTime } from '@/components/text';
import { formatCount, formatDuration, formatExact, plural } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import { hasEnded, runsHere } from '@/lib/run';
import { keptText, lastRestart } from './restarts';
import classes from './run.module.css';

const Printed = lazy(() => import('./Printed'));
const Symptoms = lazy(() => import('./Symptoms'));

const LONG_START_S = 20;

/** Why a run waits, how far its start is, how it failed, whether it was restarted, and what is wrong with it. */
export function Notice({ run }: { run: RunDetail }) {
  return (
    <>
      {run.state === 'queued' && <Waiting run={run} />}
      {run.state === 'starting' && <Starting run={run} />}
      {run.state === 'lost' && (runsHere(run) ? <Lost run={run} /> : <Silent run={run} />)}
      <Quiet run={run} />
      {run.state === 'failed' && <Failed run={run} />}
      {!hasEnded(run.state) && <Restarted run={run} />}
      <Doctor run={run} />
    </>
  );
}

function Lost({ run }: { run: RunDetail }) {
  const { data } = useInfiniteQuery(checkpointsQuery(run.id));
  const checkpoint = data?.pages[0]?.items[0];
  return (
    <p className={classes.notice} data-kind="lost">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        Its host no longer responds.{' '}
        {checkpoint && !run.command
          ? `The run resumes automatically from agent step ${formatCount(checkpoint.agent_steps)}`
          : 'The run has no checkpoint: it starts over'}
        , as soon as a host has a free slot.
      </span>
    </p>
  );
}

/** An external run whose script has missed a heartbeat. */
function Quiet({ run }: { run: RunDetail }) {
  const silence_s = useSilence(run);
  if (silence_s === null) return null;
  return (
    <p className={classes.notice} data-kind="lost" role="status">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        Its script has sent nothing for {formatDuration(silence_s)}; it sends something every {HEARTBEAT_S} s.
        After a minute the run counts as lost.
      </span>
    </p>
  );
}

/** An external run whose script has stopped sending heartbeats. */
function Silent({ run }: { run: RunDetail }) {
  const lost = run.transitions.findLast(({ after }) => after === 'lost');
  return (
    <p className={classes.notice} data-kind="lost">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        Its script stopped sending heartbeats <RelativeTime at={lost?.time ?? run.created_at} />. The run
        continues as soon as the script sends a heartbeat or data.
      </span>
    </p>
  );
}

function Failed({ run }: { run: RunDetail }) {
  const checkpoints = useInfiniteQuery(checkpointsQuery(run.id));
  const episodes = useInfiniteQuery(episodesQuery(run.id, '-episode_return'));
  const checkpoint = checkpoints.data?.pages[0]?.items[0];
  const kept = keptText({
    curves: run.agent_steps > 0,
    episodes: (episodes.data?.pages[0]?.items.length ?? 0) > 0,
    checkpoints: checkpoint !== undefined,
  });
  return (
    <div role="alert" className={classes.notice} data-kind="failed">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <div className="grow">
        <strong>Failed: {run.state_reason}</strong>
        <div>
          {kept}{' '}
          {checkpoints.data &&
            runsHere(run) &&
            (checkpoint && !run.command
              ? `Resume continues from agent step ${formatCount(checkpoint.agent_steps)}.`
              : run.command
                ? 'Start again starts its script anew.'
                : 'There is no checkpoint: Resume starts over.')}
        </div>
        {run.error && (
          <details>
            <summary>
              {runsHere(run)
                ? run.command
                  ? 'Output of its script'
                  : 'Engine output'
                : 'Reported by its script'}
            </summary>
            <pre className={classes.traceback} tabIndex={0}>
              <Suspense>
                <Printed text={run.error} />
              </Suspense>
            </pre>
          </details>
        )}
      </div>
    </div>
  );
}

/** What the training doctor says of a run, which is mostly nothing. */
function Doctor({ run }: { run: RunDetail }) {
  const { data } = useQuery({ ...symptomsQuery(run.id), enabled: run.agent_steps > 0 });
  if (!data || data.items.length === 0) return null;
  return (
    <Suspense>
      <Symptoms run={run} items={data.items} />
    </Suspense>
  );
}

/** A restart after a crash or a lost host, which the state alone does not show. */
function Restarted({ run }: { run: RunDetail }) {
  const restart = lastRestart(run);
  if (!restart) return null;
  const { attempt, cause, count, resumedFrom } = restart;
  return (
    <p className={classes.notice} data-kind="lost">
      <IconRefresh size={16} aria-hidden="true" />
      <span>
        Restarted {count === 1 ? 'once' : plural(count, 'time')}. Attempt{' '}
        <span className="num">{attempt.number}</span> on {attempt.host} ended{' '}
        <RelativeTime at={attempt.ended_at} />: {cause}.{' '}
        {resumedFrom !== null &&
          (resumedFrom > 0 ? `Resumed from agent step ${formatCount(resumedFrom)}.` : 'Started over.')}{' '}
        <Link
          to="/runs/$runId"
          params={{ runId: run.id }}
          search={{ tab: 'log', level: 'warning' }}
          className="nowrap"
        >
          Log
        </Link>
      </span>
    </p>
  );
}

/** How long the run has been starting, and what its engine does now. */
function Starting({ run }: { run: RunDetail }) {
  const now = useNow();
  const claimed = run.attempts.at(-1)?.claimed_at;
  const elapsed_s = claimed === undefined ? null : Math.max(0, (now - new Date(claimed).getTime()) / 1000);
  return (
    <p className={classes.notice}>
      <IconClock size={16} aria-hidden="true" />
      <span>
        <span role="status">
          Starting{run.host !== null && ` on ${run.host}`}: {run.state_reason}
        </span>
        {elapsed_s !== null && <span className="muted">, for {formatDuration(elapsed_s)}</span>}.
        {elapsed_s !== null &&
          elapsed_s > LONG_START_S &&
          ' The first start after an installation also compiles loops; many processes take longer to start.'}
      </span>
    </p>
  );
}

function Waiting({ run }: { run: RunDetail }) {
  const { data } = useQuery(queueQuery(run.id));
  const now = useNow();
  if (!data) {
    return (
      <p className={classes.notice}>
        <IconClock size={16} aria-hidden="true" />
        <span>
          Waiting in queue <span className="num">{run.queue}</span>
        </span>
      </p>
    );
  }
  const { position, waiting, ahead, reason, expected_start_at: start, unknown_start: unknown } = data;
  const others = position - 1 - ahead.length;
  const wait_s = start === null ? null : Math.max(0, (new Date(start).getTime() - now) / 1000);
  return (
    <div className={classes.notice}>
      <IconClock size={16} aria-hidden="true" />
      <span>
        <strong>
          Number <span className="num">{position}</span> of <span className="num">{waiting}</span> in queue{' '}
          <span className="num">{run.queue}</span>
        </strong>
        : {reason}.
        {ahead.length > 0 && (
          <>
            {' '}
            Ahead:{' '}
            {ahead.map(({ id, name, priority }, k) => (
              <span key={id}>
                {k > 0 && ', '}
                <Link to="/runs/$runId" params={{ runId: id }}>
                  {name}
                </Link>
                {priority !== run.priority && <span className="muted"> (priority {priority})</span>}
              </span>
            ))}
            {others > 0 && ` and ${plural(others, 'more run')}`}.
          </>
        )}{' '}
        {wait_s !== null && start !== null ? (
          wait_s < 5 ? (
            'Expected to start now.'
          ) : (
            <span title={`${formatExact(start)}, assuming that the runs ahead train to their limits`}>
              Expected to start in about {formatDuration(wait_s)}.
            </span>
          )
        ) : (
          unknown !== reason && `Expected start unknown: ${unknown}.`
        )}
      </span>
    </div>
  );
}

/** Shows that the disk of an active run's host is full: its training may stand still. */
export function FullDisk({ run }: { run: Run }) {
  const { data } = useQuery({ ...hostSilenceQuery, enabled: run.host !== null });
  const host = data?.items.find(({ id }) => id === run.host);
  if (!host?.load.disk_problem) return null;
  return (
    <p className={classes.notice} data-kind="failed" role="status">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        The disk of host {host.id}: {host.load.disk_problem}. What the run records waits for room, and the
        data below may be out of date. Free some space on {host.id}: the run then continues by itself.
      </span>
    </p>
  );
}

/** Shows that the host of an active run has stopped, or stopped sending heartbeats. */
export function SilentHost({ run }: { run: Run }) {
  const { data } = useQuery({ ...hostSilenceQuery, enabled: run.host !== null });
  const host = data?.items.find(({ id }) => id === run.host);
  if (!host || host.alive) return null;
  return (
    <p className={classes.notice} data-kind="lost" role="status">
      <IconAlertTriangle size={16} aria-hidden="true" />
      <span>
        {host.stopped_at ? (
          <>
            The worker of host {host.id} stopped <RelativeTime at={host.stopped_at} />.
          </>
        ) : (
          <>
            Host {host.id} has not responded since <RelativeTime at={host.last_seen_at} />.
          </>
        )}{' '}
        The data below may be out of date. The run resumes from its latest checkpoint on another host once its
        lease expires.
      </span>
    </p>
  );
}
