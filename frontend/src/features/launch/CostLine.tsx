import { useInfiniteQuery } from '@tanstack/react-query';
import type { Environment } from '@/api/catalogue';
import { runsQuery } from '@/api/runs';
import { formatBytes, formatCount, formatDuration, formatInteger } from '@/lib/format';
import type { ConfigField } from '@/lib/schema';
import { costOf, rateOf, type StartingPoint } from './cost';
import type { Draft } from './draft';
import classes from './launch.module.css';
import { isSweep } from './requests';

type Props = {
  fields: readonly ConfigField[];
  draft: Draft;
  environment: Environment | undefined;
  startingPoint: StartingPoint | undefined;
};

/** The run's expected cost: frames, time at a measured rate, memory. */
export function CostLine({ fields, draft, environment, startingPoint }: Props) {
  const { data } = useInfiniteQuery(
    runsQuery({
      algorithm: [draft.algorithm],
      environment: [draft.environment],
      archived: 'all',
      sort: '-agent_steps',
      limit: 10,
    }),
  );
  const cost = costOf(fields, draft, environment, data?.pages[0]?.items ?? [], startingPoint);
  const atMost = isSweep(fields, draft) ? 'at most ' : '';
  const rate = cost.measuredBy && rateOf(cost.measuredBy);
  return (
    <span role="status" aria-label="Cost">
      {cost.nRuns > 1 && (
        <>
          {atMost}
          {formatInteger(cost.nRuns)} runs, each{' '}
        </>
      )}
      {cost.frames === null ? (
        'no limit on agent steps'
      ) : (
        <>
          <span className="num">{formatCount(cost.agentSteps)}</span> {startingPoint && 'more '}agent steps ={' '}
          <span className="num">{formatCount(cost.frames)}</span> frames
        </>
      )}
      {cost.time_s === null ? (
        <span className="muted"> · no rate measured yet</span>
      ) : (
        <>
          {' '}
          · about <span className="num">{formatDuration(cost.time_s)}</span>
          {cost.nRuns > 1 && (
            <>
              , {atMost}
              <span className="num">{formatDuration(cost.nRuns * cost.time_s)}</span> of training in total
            </>
          )}
          {cost.measuredBy && rate && (
            <span className="muted">
              {' '}
              at <span className="num">{formatCount(rate)}</span> agent steps/s, measured by{' '}
              <span className={`ellipsis ${classes.measuredRun}`} title={cost.measuredBy.name}>
                {cost.measuredBy.name}
              </span>
            </span>
          )}
        </>
      )}
      {cost.memoryBytes !== null && (
        <>
          {' '}
          · at most <span className="num">{formatBytes(cost.memoryBytes)}</span> of memory
        </>
      )}
    </span>
  );
}
