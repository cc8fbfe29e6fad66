import { Button } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { checkpointsQuery, evaluationsQuery, type Evaluation } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { Empty, Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Term } from '@/components/Term';
import { RelativeTime } from '@/components/text';
import {
  DASH,
  describePublished,
  formatCount,
  formatScore,
  formatInteger,
  protocolLabel,
} from '@/lib/format';
import { ELSEWHERE, hasEnded, isExternal } from '@/lib/run';
import { EvaluateDialog } from './EvaluateDialog';

/** The lowest and the highest return of an evaluation's episodes. */
function returnRange({ returns }: Evaluation): string {
  const finite = returns.filter((value) => value !== null);
  return finite.length === 0
    ? DASH
    : `${formatScore(Math.min(...finite))} to ${formatScore(Math.max(...finite))}`;
}

/** How many episodes the protocol has ended, and after how many frames; undefined if none. */
function limitText({ n_at_max_frames, n_episodes, max_frames }: Evaluation): string | undefined {
  if (!n_at_max_frames || max_frames === null) return undefined;
  return `${n_at_max_frames} of ${n_episodes} ended at the limit of ${formatInteger(max_frames)} frames`;
}

const noCheckpoint = (run: Run): string =>
  isExternal(run)
    ? ELSEWHERE.evaluate
    : hasEnded(run.state)
      ? 'The run ended before it saved a checkpoint: there is nothing to evaluate.'
      : 'No checkpoint yet: checkpoints are saved at intervals during training, and at its end.';

/** The scores that an evaluation is normalised by, with their sources; undefined without them. */
const referencesText = ({ human_normalised_by }: Evaluation): string | undefined =>
  human_normalised_by.map(describePublished).join('\n') || undefined;

/** The evaluations of the run's checkpoints, each with its protocol. */
export function EvaluationsTab({ run }: { run: Run }) {
  const { data, error, refetch } = useQuery(evaluationsQuery(run.id));
  const checkpoints = useInfiniteQuery(checkpointsQuery(run.id));
  const canEvaluate =
    !isExternal(run) && (checkpoints.data?.pages.some(({ items }) => items.length > 0) ?? false);
  const normalised = data?.some(({ human_normalised_pct }) => human_normalised_pct !== null) ?? false;
  const denied = useDenied();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 8 }}>
        {denied === undefined ? (
          <Button variant="default" disabled={!canEvaluate} onClick={() => setAsking(true)}>
            Evaluate a checkpoint
          </Button>
        ) : (
          <PermittedButton variant="default" denied={denied}>
            Evaluate a checkpoint
          </PermittedButton>
        )}
        <Term id="evaluation" icon>
          What this is
        </Term>
        <span className="muted">{checkpoints.isSuccess && !canEvaluate && noCheckpoint(run)}</span>
      </div>
      {asking && <EvaluateDialog run={run} onClose={() => setAsking(false)} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the evaluations" />}
      {data?.length === 0 && <Empty>No evaluations yet.</Empty>}
      {data && data.length > 0 && (
        <ScrollPanel label="Evaluations">
          <table className="grid">
            <thead>
              <tr>
                <th className="right">
                  <Term>Agent steps</Term>
                </th>
                <th>
                  <Term>Protocol</Term>
                </th>
                <th className="right">Episodes</th>
                <th className="right">Seed</th>
                <th className="right">Mean return</th>
                {normalised && (
                  <th
                    className="right"
                    title="100 (score − random) / (human − random), by published scores of the same protocol"
                  >
                    Of human (%)
                  </th>
                )}
                <th className="right">Range</th>
                <th>Requested</th>
                <th>State</th>
              </tr>
            </thead>
            <tbody>
              {data.map((evaluation) => (
                <tr key={evaluation.id}>
                  <td className="right num" title={formatInteger(evaluation.agent_steps)}>
                    {formatCount(evaluation.agent_steps)}
                  </td>
                  <td>{protocolLabel(evaluation.protocol)}</td>
                  <td className="right num">{evaluation.n_episodes}</td>
                  <td className="right num">{evaluation.seed}</td>
                  <td className="right num">
                    {formatScore(evaluation.mean_return)}
                    {limitText(evaluation) && <div className="muted">{limitText(evaluation)}</div>}
                  </td>
                  {normalised && (
                    <td className="right num" title={referencesText(evaluation)}>
                      {formatScore(evaluation.human_normalised_pct)}
                    </td>
                  )}
                  <td className="right num">{returnRange(evaluation)}</td>
                  <td>
                    <RelativeTime at={evaluation.requested_at} />
                  </td>
                  <td style={{ overflowWrap: 'anywhere' }} title={evaluation.error ?? undefined}>
                    {evaluation.error === null
                      ? evaluation.state
                      : `${evaluation.state}: ${evaluation.error.trim().split('\n').at(-1) ?? ''}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
    </>
  );
}
