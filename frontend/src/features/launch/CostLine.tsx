import { useDebouncedValue } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { Environment } from '@/api/catalogue';
import { estimateQuery, runsQuery, type RunFields } from '@/api/runs';
import { formatBytes, formatCount, formatDuration, formatInteger } from '@/lib/format';
import type { ConfigField } from '@/lib/schema';
import { costOf, rateOf, type StartingPoint } from './cost';
import type { Draft } from './draft';
import classes from './launch.module.css';
import { isSweep, toEstimateRequest } from './requests';

/** How long typing pauses before the service is asked again. */
const PAUSE_MS = 300;

type Props = {
  fields: readonly ConfigField[];
  draft: Draft;
  environment: Environment | undefined;
  startingPoint: StartingPoint | undefined;
};

const asSentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

/** What the service says of the drafted run before it is started, once typing pauses. */
export function useEstimate(fields: readonly ConfigField[], draft: Draft) {
  const [settled] = useDebouncedValue(JSON.stringify(toEstimateRequest(fields, draft)), PAUSE_MS);
  return useQuery(estimateQuery(JSON.parse(settled) as RunFields));
}

/** The run's expected cost: frames, time at a measured rate, memory; and why no host can run it well. */
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
  const { data: estimate } = useEstimate(fields, draft);
  const cost = costOf(fields, draft, environment, data?.pages[0]?.items ?? [], startingPoint);
  const atMost = isSweep(fields, draft) ? 'at most ' : '';
  const rate = cost.measuredBy && rateOf(cost.measuredBy);
  return (
    <>
      {estimate?.warnings.map((warning) => (
        <span key={warning} role="note" className={classes.warning}>
          {asSentence(warning)}
        </span>
      ))}
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
            <span className="num">{formatCount(cost.agentSteps)}</span> {startingPoint && 'more '}agent steps
            {cost.frames !== cost.agentSteps && (
              <>
                {' '}
                = <span className="num">{formatCount(cost.frames)}</span> frames
              </>
            )}
          </>
        )}
        {cost.time_s === null ? (
          <span className="muted"> · no rate measured for this network yet</span>
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
        {estimate && (
          <>
            {' '}
            · at most <span className="num">{formatBytes(estimate.memory_bytes)}</span> of memory
          </>
        )}
      </span>
    </>
  );
}
