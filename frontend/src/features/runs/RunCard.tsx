import { Link } from '@tanstack/react-router';
import type { Run } from '@/api/runs';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { RunName } from '@/components/RunName';
import { StateMark } from '@/components/StateMark';
import { Time } from '@/components/Time';
import { formatScore } from '@/lib/format';
import { shortWorld } from '@/lib/world';

/** A run on a phone. */
export function RunCard({ run }: { run: Run }) {
  return (
    <>
      <div role="gridcell" className="grow">
        <div className="row">
          <Link to="/runs/$runId" params={{ runId: run.id }} className="ellipsis grow" aria-label={run.name}>
            <RunName name={run.name} />
          </Link>
          <StateMark state={run.state} reason={run.state_reason} />
        </div>
        <div className="row muted">
          <span className="ellipsis grow">
            {run.algorithm} on {shortWorld(run.environment)}
          </span>
          <Time at={run.created_at} />
        </div>
        <div className="row">
          <span className="grow">
            <ProgressBar
              fraction={run.progress}
              timeLeft_s={run.time_left_s}
              label={`Progress of ${run.name}`}
              compact
            />
          </span>
          <span>
            score <span className="num">{formatScore(run.score)}</span>
          </span>
        </div>
      </div>
      <div role="gridcell">
        <ActionMenu run={run} />
      </div>
    </>
  );
}
