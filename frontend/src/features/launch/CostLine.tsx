import { useInfiniteQuery } from '@tanstack/react-query';
import type { Environment } from '@/api/catalog';
import { runsQuery } from '@/api/runs';
import { formatBytes, formatCount, formatDuration } from '@/lib/format';
import { costOf, rateOf, type Begun } from './cost';
import type { Draft } from './draft';
import type { Setting } from '@/lib/schema';
import classes from './launch.module.css';

type Props = {
  settings: readonly Setting[];
  draft: Draft;
  world: Environment | undefined;
  begun: Begun | undefined;
};

/** One line on what the run will cost: frames, time at a measured rate, memory. */
export function CostLine({ settings, draft, world, begun }: Props) {
  const { data } = useInfiniteQuery(
    runsQuery({
      algorithm: [draft.algorithm],
      environment: [draft.environment],
      archived: 'all',
      sort: '-agent_steps',
      limit: 10,
    }),
  );
  const cost = costOf(settings, draft, world, data?.pages[0]?.items ?? [], begun);
  const rate = cost.measuredBy && rateOf(cost.measuredBy);
  return (
    <span role="status" aria-label="Cost">
      {cost.nRuns > 1 && <>{cost.nRuns} runs, each </>}
      {cost.frames === null ? (
        'without a bound on agent steps'
      ) : (
        <>
          <span className="num">{formatCount(cost.agentSteps)}</span> {begun && 'more '}agent steps ={' '}
          <span className="num">{formatCount(cost.frames)}</span> frames
        </>
      )}
      {cost.time_s === null ? (
        <span className="muted"> · no rate measured yet</span>
      ) : (
        <>
          {' '}
          · about <span className="num">{formatDuration(cost.time_s)}</span>
          {cost.measuredBy && rate && (
            <span className="muted">
              {' '}
              at <span className="num">{formatCount(rate)}</span> agent steps/s, as{' '}
              <span className={`ellipsis ${classes.like}`} title={cost.measuredBy.name}>
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
