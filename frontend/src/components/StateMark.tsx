import { Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import { stateColour, stateMeaning, type RunState } from '@/lib/states';

/** A shape a state, so that colour is never the only sign. */
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

export function StateMark({ state, reason }: { state: RunState; reason?: string }) {
  return (
    <Tooltip label={reason ? `${stateMeaning(state)} ${reason}` : stateMeaning(state)}>
      <span className="row nowrap" style={{ color: stateColour(state), gap: 6, display: 'inline-flex' }}>
        <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
          {SHAPES[state]}
        </svg>
        {state}
      </span>
    </Tooltip>
  );
}
