import { Link } from '@tanstack/react-router';
import type { CSSProperties } from 'react';
import type { Run } from '@/api/runs';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { StateMark } from '@/components/StateMark';
import { Time } from '@/components/Time';
import { formatScore } from '@/lib/format';
import { shortWorld } from '@/lib/world';
import classes from './runs.module.css';

/** A run on a phone. */
export function RunCard({ run, index, style }: { run: Run; index: number; style: CSSProperties }) {
  return (
    <div role="row" aria-rowindex={index + 2} className={classes.card} style={style}>
      <div role="cell" className="grow">
        <div className="row">
          <Link to="/runs/$runId" params={{ runId: run.id }} className="ellipsis grow">
            {run.name}
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
            />
          </span>
          <span>
            score <span className="num">{formatScore(run.score)}</span>
          </span>
        </div>
      </div>
      <div role="cell">
        <ActionMenu run={run} />
      </div>
    </div>
  );
}
