import { Anchor } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { environmentsQuery } from '@/api/catalogue';
import { checkpointsQuery, type Checkpoint } from '@/api/runResources';
import { type Run, runActions, useRunMutation } from '@/api/runs';
import { withTicket } from '@/api/session';
import { ButtonLink, LoadingButton, ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { served } from '@/lib/base';
import { isPlayable } from '@/lib/environments';
import { formatBytes, formatDuration, formatInteger, formatScore } from '@/lib/format';
import { isExternal, stepsTitle } from '@/lib/run';
import { EvaluateDialog } from './EvaluateDialog';
import { ExportAgent } from './ExportAgent';

const FILES_OF_SCRIPT =
  'The run’s script has saved these files. They are stored unchanged and cannot be loaded here: the run ' +
  'cannot be evaluated, resumed or forked from them. Open a file only if you trust the script.';

/** The checkpoints, from which the run can be resumed or forked; of an external run, to download only. */
export default function CheckpointsTab({ run }: { run: Run }) {
  const denied = useDenied();
  const [evaluating, setEvaluating] = useState<string | null>(null);
  const pages = useInfiniteQuery(checkpointsQuery(run.id));
  const { data, error, refetch } = pages;
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the checkpoints" />;
  const checkpoints = data.pages.flatMap(({ items }) => items);
  const external = isExternal(run);
  const now = !external && run.state === 'running' && <CheckpointNow run={run} />;
  if (checkpoints.length === 0) {
    return (
      <>
        {now}
        <Empty>
          {external ? 'No checkpoints yet: the run’s script has sent no file.' : 'No checkpoints yet.'}
        </Empty>
      </>
    );
  }
  return (
    <>
      {now}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {external ? <p className="muted">{FILES_OF_SCRIPT}</p> : <PlayWithAgent run={run} />}
      <ScrollPanel label="Checkpoints">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">{stepsTitle([run])}</th>
              {!external && <th className="right">Updates</th>}
              <th className="right">Episodes</th>
              <th className="right">Training time</th>
              {external ? <th className="right">Score</th> : <th className="right">Attempt</th>}
              <th>Saved</th>
              <th className="right">Size</th>
              <th>File</th>
              {!external && (
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {checkpoints.map((checkpoint) => (
              <tr key={checkpoint.id}>
                <td className="right num">{formatInteger(checkpoint.agent_steps)}</td>
                {!external && <td className="right num">{formatInteger(checkpoint.updates)}</td>}
                <td className="right num">{formatInteger(checkpoint.episodes)}</td>
                <td className="right num">{formatDuration(checkpoint.wall_time_s)}</td>
                <td className="right num">{external ? formatScore(checkpoint.score) : checkpoint.attempt}</td>
                <td>
                  <RelativeTime at={checkpoint.recorded_at} />
                </td>
                <td className="right num">{formatBytes(checkpoint.size_bytes)}</td>
                <td className="mono nowrap">
                  <Anchor
                    href={withTicket(served(`/api/v1/checkpoints/${checkpoint.id}/file`))}
                    // There may be a newer ticket.
                    onClick={({ currentTarget }) => {
                      currentTarget.href = withTicket(currentTarget.href);
                    }}
                    download
                    title={`SHA-256 ${checkpoint.sha256}`}
                    inherit
                  >
                    {checkpoint.file}
                  </Anchor>
                </td>
                {!external && (
                  <Actions
                    run={run.id}
                    checkpoint={checkpoint}
                    denied={denied}
                    onEvaluate={() => setEvaluating(checkpoint.id)}
                  />
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {evaluating !== null && (
        <EvaluateDialog run={run} checkpoint={evaluating} onClose={() => setEvaluating(null)} />
      )}
      <ShowMore query={pages} mt={8} />
    </>
  );
}

/** Has a running run save a checkpoint. */
function CheckpointNow({ run }: { run: Run }) {
  const denied = useDenied();
  const save = useRunMutation((id: string) => runActions.checkpoint(id));
  const isAwaited = run.checkpoint_requested_at !== null;
  return (
    <div>
      <LoadingButton
        size="compact-sm"
        variant="default"
        loading={save.isPending || isAwaited}
        unavailable={denied !== undefined}
        title={denied}
        onClick={() => save.mutate(run.id)}
      >
        Checkpoint now
      </LoadingButton>
      {save.isError && <Problem error={save.error} />}
    </div>
  );
}

/** Leads to a session in which people play beside the agent of the latest checkpoint. */
function PlayWithAgent({ run }: { run: Run }) {
  const { data: environments } = useQuery(environmentsQuery);
  const environment = environments?.find(({ id }) => id === run.environment);
  if (environment === undefined || !isPlayable(environment)) return null;
  return (
    <p>
      <ButtonLink
        size="compact-xs"
        variant="default"
        to="/play"
        search={{ environment: run.environment, agent: run.id }}
      >
        Play with this agent
      </ButtonLink>
    </p>
  );
}

type ActionsProps = {
  run: string;
  checkpoint: Checkpoint;
  denied: string | undefined;
  onEvaluate: () => void;
};

function Actions({ run, checkpoint, denied, onEvaluate }: ActionsProps) {
  return (
    <td className="actions">
      <PermittedButton
        denied={denied}
        size="compact-xs"
        variant="default"
        aria-label={`Evaluate ${checkpoint.file}`}
        onClick={onEvaluate}
      >
        Evaluate
      </PermittedButton>
      <ExportAgent run={run} checkpoint={checkpoint} />
      {denied === undefined ? (
        <ButtonLink
          size="compact-xs"
          variant="default"
          to="/new"
          search={{ fork: run, checkpoint: checkpoint.id }}
        >
          Fork from here
        </ButtonLink>
      ) : (
        <PermittedButton size="compact-xs" variant="default" denied={denied}>
          Fork from here
        </PermittedButton>
      )}
    </td>
  );
}
