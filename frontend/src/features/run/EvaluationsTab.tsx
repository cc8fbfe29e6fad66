import { Button } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { checkpointsQuery, evaluationsQuery, requestEvaluation, type Evaluation } from '@/api/runParts';
import { useRunChange, type Run } from '@/api/runs';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Time } from '@/components/Time';
import { DASH, formatCount, formatScore, formatWhole } from '@/lib/format';
import { protocolWords } from '@/lib/protocol';
import { hasEnded } from '@/lib/states';

/** The spread of an evaluation's episodes. */
function spread({ returns }: Evaluation): string {
  const found = returns.filter((value) => value !== null);
  return found.length === 0
    ? DASH
    : `${formatScore(Math.min(...found))} to ${formatScore(Math.max(...found))}`;
}

const noCheckpoint = ({ state }: Run): string =>
  hasEnded(state)
    ? 'The run ended before it saved a checkpoint: there is nothing to evaluate.'
    : 'No checkpoint yet: one is saved every while as the run trains, and when it ends.';

/** Scores from fresh starts, each with the protocol it was measured by. */
export function EvaluationsTab({ run }: { run: Run }) {
  const { data, error, refetch } = useQuery(evaluationsQuery(run.id));
  const checkpoints = useInfiniteQuery(checkpointsQuery(run.id));
  const canEvaluate = checkpoints.data?.pages.some(({ items }) => items.length > 0) ?? false;
  const ask = useRunChange(() => requestEvaluation(run.id));
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 8 }}>
        <Button
          variant="default"
          disabled={!canEvaluate}
          loading={ask.isPending}
          onClick={() => ask.mutate(undefined)}
        >
          Evaluate the newest checkpoint now
        </Button>
        <span className="muted">
          {canEvaluate && '30 episodes by the world’s own protocol.'}
          {checkpoints.isSuccess && !canEvaluate && noCheckpoint(run)}
        </span>
      </div>
      {ask.isError && <Problem error={ask.error} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the evaluations" />}
      {data?.length === 0 && <Empty>Nothing has been evaluated yet.</Empty>}
      {data && data.length > 0 && (
        <ScrollPanel label="Evaluations">
          <table className="grid">
            <thead>
              <tr>
                <th className="right">Agent steps</th>
                <th>Protocol</th>
                <th className="right">Episodes</th>
                <th className="right">Mean return</th>
                <th className="right">Least to greatest</th>
                <th>Asked for</th>
                <th>State</th>
              </tr>
            </thead>
            <tbody>
              {data.map((evaluation) => (
                <tr key={evaluation.id}>
                  <td className="right num" title={formatWhole(evaluation.agent_steps)}>
                    {formatCount(evaluation.agent_steps)}
                  </td>
                  <td>{protocolWords(evaluation.protocol)}</td>
                  <td className="right num">{evaluation.n_episodes}</td>
                  <td className="right num">{formatScore(evaluation.mean_return)}</td>
                  <td className="right num">{spread(evaluation)}</td>
                  <td>
                    <Time at={evaluation.requested_at} />
                  </td>
                  <td title={evaluation.error ?? undefined}>{evaluation.state}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
    </>
  );
}
