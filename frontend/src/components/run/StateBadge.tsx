import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Run } from '@/api/runs';
import { formatDuration } from '@/lib/format';
import type { RunState } from '@/lib/run';
import { HEARTBEAT_S, useSilence } from './silence';

const COLOURS: Record<RunState, string> = {
  queued: 'var(--muted)',
  starting: 'var(--running)',
  running: 'var(--running)',
  stopping: 'var(--lost)',
  finished: 'var(--finished)',
  stopped: 'var(--muted)',
  failed: 'var(--failed)',
  lost: 'var(--lost)',
};

const MEANINGS: Record<RunState, string> = {
  queued: 'Waiting for a host with a free slot.',
  starting: 'A host has claimed it and is building the environment and the network.',
  running: 'Training.',
  stopping: 'Stopping: it is saving a final checkpoint.',
  finished: 'Reached a stop condition.',
  stopped: 'Stopped by a user. It can be resumed from its latest checkpoint.',
  failed: 'Ended with an error; see the log.',
  lost: 'Its host no longer responds. It resumes automatically from its latest checkpoint.',
};

/** One shape per state, so that colour is never the only sign. */
const SHAPES: Record<RunState, ReactNode> = {
  queued: (
    <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="1.6" strokeDasharray="2 1.6" />
  ),
  starting: <path d="M6 1.6a4.4 4.4 0 0 1 0 8.8z M6 2a4 4 0 1 0 0 8" fill="currentColor" fillOpacity=".9" />,
  running: <path d="M3 1.8v8.4L10.2 6z" fill="currentColor" />,
  stopping: (
    <rect x="2.6" y="2.6" width="6.8" height="6.8" fill="none" stroke="currentColor" strokeWidth="1.6" />
  ),
  finished: <path d="M2 6.4l2.8 2.8L10 3" fill="none" stroke="currentColor" strokeWidth="2" />,
  stopped: <rect x="2.2" y="2.2" width="7.6" height="7.6" fill="currentColor" />,
  failed: <path d="M2.4 2.4l7.2 7.2M9.6 2.4L2.4 9.6" fill="none" stroke="currentColor" strokeWidth="2" />,
  lost: (
    <path d="M6 1.4L11 10.4H1z" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinejoin="round" />
  ),
};

type Props = {
  state: RunState;
  reason?: string;
  /** What the state means; by default, for a run. */
  meaning?: string;
  /** In place of the state's name. */
  label?: string;
};

/** A run's state, with its meaning and reason in a tooltip. */
export function StateBadge({ state, reason, meaning = MEANINGS[state], label = state }: Props) {
  return (
    <Tooltip label={reason ? `${meaning} ${reason}` : meaning}>
      <span className="row nowrap" style={{ color: COLOURS[state], gap: 6, display: 'inline-flex' }}>
        <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
          {SHAPES[state]}
        </svg>
        {label}
      </span>
    </Tooltip>
  );
}

/** The badge of a run in a list: `silent` where its script has missed a heartbeat. */
export function RunBadge({ run }: { run: Run }) {
  const silence_s = useSilence(run);
  if (silence_s === null) return <StateBadge state={run.state} reason={run.state_reason} />;
  return (
    <StateBadge
      state="stopping"
      label="silent"
      meaning={`Its script has sent nothing for ${formatDuration(silence_s)}; it sends something every ${HEARTBEAT_S} s. After a minute the run counts as lost.`}
    />
  );
}
