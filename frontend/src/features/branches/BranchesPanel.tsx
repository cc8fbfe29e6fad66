import { SegmentedControl, Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, useState } from 'react';
import {
  branchesQuery,
  deleteBranch,
  fanQuery,
  isWaiting,
  useBranchMutation,
  type Branch,
  type Returns,
} from '@/api/branches';
import { keys } from '@/api/keys';
import { gamesFromQuery, isReplayable, type Recording } from '@/api/play';
import { readTrace, type Episode } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { sourceAt } from '@/components/chart/export/source';
import { ServedFigure, useFittingWidth } from '@/components/chart/ServedFigure';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { DASH, formatCount, formatInteger, formatScore } from '@/lib/format';
import { BranchForm } from './BranchForm';
import classes from './branches.module.css';
import { formatError, shortName, valueName, verdict } from './words';

const HEIGHT = 360;
const RETURNS = [
  { value: 'discounted', label: 'Discounted' },
  { value: 'true', label: 'True return' },
];

type Props = {
  run: Run;
  episode: Episode;
  /** The id of the branch whose fan is shown. */
  selected: string | undefined;
  onSelect: (branch: string | undefined) => void;
  /** The decision to branch from; null while the form is closed. */
  from: number | null;
  onClose: () => void;
};

/** The branches of an episode, and the fan of one of them. */
export default function BranchesPanel({ run, episode, selected, onSelect, from, onClose }: Props) {
  const denied = useDenied();
  const { data, error, refetch } = useQuery(branchesQuery(run.id, episode.id));
  const trace = useQuery({
    queryKey: keys.trace(episode.id),
    queryFn: ({ signal }) => readTrace(episode.id, signal),
    staleTime: Infinity,
    structuralSharing: false,
  });
  const names = trace.data?.action_names ?? [];
  const [deleting, setDeleting] = useState<Branch | null>(null);
  const shown = data?.find(({ id }) => id === selected) ?? data?.find(({ state }) => state === 'done');
  const unreadable = from !== null && trace.error && (
    <Problem error={trace.error} onRetry={() => void trace.refetch()} />
  );
  const form = from !== null && trace.data && (
    <BranchForm
      run={run}
      episode={episode}
      decision={from}
      actionNames={names}
      continuous={Array.isArray(trace.data.actions[0])}
      onClose={onClose}
      onCreated={(branch) => {
        onSelect(branch.id);
        onClose();
      }}
    />
  );
  if (!error && !data?.length)
    return (
      <>
        {unreadable}
        {form}
      </>
    );
  return (
    <section className={classes.section} aria-label="Branches">
      {unreadable}
      {form}
      <h2 className="section-title">Branches</h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {data && data.length > 0 && (
        <ScrollPanel label="Table of branches">
          <table className="grid">
            <thead>
              <tr>
                <th>Branch</th>
                <th className="wide">Policy</th>
                <th className="wide">First action</th>
                <th className="right">V or max Q</th>
                <th className="right">Discounted return</th>
                <th className="right wide">True return</th>
                <th className="wide">State</th>
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((branch) => (
                <tr key={branch.id} data-selected={branch.id === shown?.id || undefined}>
                  <td className="nowrap">
                    <button
                      type="button"
                      className={classes.name}
                      aria-pressed={branch.id === shown?.id}
                      onClick={() => onSelect(branch.id)}
                    >
                      {shortName(branch)}
                    </button>
                  </td>
                  <td className="nowrap wide">
                    <Link to="/runs/$runId" params={{ runId: branch.policy.run_id }}>
                      {branch.policy.run_name ?? 'deleted run'}
                    </Link>{' '}
                    <span className="muted">at {formatCount(branch.policy.agent_steps)}</span>
                  </td>
                  <td className="nowrap wide">
                    {branch.first_action === null
                      ? DASH
                      : (names[branch.first_action] ?? branch.first_action)}
                  </td>
                  <td className="right num">{formatScore(branch.outcome?.value)}</td>
                  <td className="right num nowrap">{withError(branch.outcome?.discounted_return)}</td>
                  <td className="right num nowrap wide">{withError(branch.outcome?.true_return)}</td>
                  <td className={`wide ${branch.error === null ? 'nowrap' : classes.problem}`}>
                    {branch.error === null ? branch.state : `failed: ${lastLine(branch.error)}`}
                  </td>
                  <td className="actions">
                    <PermittedButton
                      size="compact-xs"
                      variant="default"
                      denied={denied}
                      aria-label={`Delete branch ${shortName(branch)}`}
                      onClick={() => setDeleting(branch)}
                    >
                      Delete
                    </PermittedButton>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
      {shown && <Fan key={shown.id} branch={shown} />}
      {deleting && (
        <DeleteDialog
          run={run.id}
          episode={episode.id}
          branch={deleting}
          onDeleted={() => {
            if (deleting.id === selected) onSelect(undefined);
          }}
          onClose={() => setDeleting(null)}
        />
      )}
    </section>
  );
}

const withError = (of: { mean: number | null; standard_error: number | null } | undefined): string =>
  of === undefined
    ? DASH
    : `${formatScore(of.mean)}${of.standard_error === null ? '' : ` ± ${formatError(of.standard_error)}`}`;

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? text;

function Fan({ branch }: { branch: Branch }) {
  const theme = useComputedColorScheme('light');
  const [box, width] = useFittingWidth();
  const [returns, setReturns] = useState<Returns>('discounted');
  const [failed, setFailed] = useState<unknown>(null);
  const { outcome, policy } = branch;
  const { data, error, refetch } = useQuery({
    ...fanQuery(branch.id, returns, theme, width),
    enabled: width !== undefined && outcome !== null,
  });
  const problem = error ?? failed;
  const words = outcome && verdict(branch, outcome);
  return (
    <div className={`panel ${classes.fan}`} ref={box}>
      {!outcome ? (
        <p className="muted" role="status">
          {isWaiting(branch)
            ? branch.state === 'running'
              ? 'A worker is playing the continuations…'
              : 'Waiting for a worker…'
            : `It could not be played: ${lastLine(branch.error ?? 'the reason is not known')}`}
        </p>
      ) : (
        <>
          <div className="row wrap">
            <SegmentedControl
              size="xs"
              aria-label="Returns"
              value={returns}
              data={RETURNS}
              onChange={(value) => setReturns(value as Returns)}
            />
            <span className="grow" />
            <ExportButton
              source={sourceAt({ name: 'branch', title: shortName(branch) }, '/api/v1/figures/branch', {
                branch: branch.id,
                returns,
              })}
            />
          </div>
          {problem ? (
            <Problem
              error={problem}
              onRetry={() => {
                setFailed(null);
                void refetch();
              }}
            />
          ) : data ? (
            <ServedFigure
              figure={data}
              label={`Fan of ${shortName(branch)}. ${words ?? ''}`}
              onFailed={setFailed}
            />
          ) : (
            <Skeleton height={HEIGHT} radius={2} />
          )}
          <p className={classes.words}>{words}</p>
          <p className="muted">
            {returns === 'discounted'
              ? `Discounted by ${String(policy.gamma)} a decision${
                  policy.reward_clip === null ? '' : `, rewards clipped to ±${String(policy.reward_clip)}`
                }, as ${valueName(branch)} predicts. Where a continuation was cut off, a hollow dot adds ${
                  policy.action_values ? 'max Q' : 'V'
                } of its last state.`
              : 'True rewards, undiscounted, as far as they were played.'}{' '}
            Seed {formatInteger(branch.seed)}. The agent that recorded the episode expected{' '}
            {formatScore(branch.episode.value)}, and the episode itself then returned{' '}
            {formatScore(branch.episode.discounted_return)} (discounted),{' '}
            {formatScore(branch.episode.true_return)} (true).
          </p>
          <PlayedOn branch={branch} />
        </>
      )}
    </div>
  );
}

/** The games that people have played from the branch's decision on; they are lines of the fan, too. */
function PlayedOn({ branch }: { branch: Branch }) {
  const { data } = useQuery(gamesFromQuery(branch.episode_id));
  const isPlayedOn = (game: Recording): boolean =>
    game.source?.decision === branch.decision && isReplayable(game) && game.length_steps > branch.decision;
  const games = data?.filter(isPlayedOn) ?? [];
  if (games.length === 0) return null;
  return (
    <p>
      Played from this decision on by{' '}
      {games.map((game, at) => (
        <Fragment key={game.id}>
          {at > 0 && ', '}
          <Link to="/play/recordings/$recordingId" params={{ recordingId: game.id }}>
            {game.player}
          </Link>{' '}
          <span className="muted">
            <RelativeTime at={game.started_at} />
          </span>
        </Fragment>
      ))}
      .
    </p>
  );
}

type DeleteProps = {
  run: string;
  episode: string;
  branch: Branch;
  onDeleted: () => void;
  onClose: () => void;
};

function DeleteDialog({ run, episode, branch, onDeleted, onClose }: DeleteProps) {
  const remove = useBranchMutation(run, episode, deleteBranch);
  return (
    <ConfirmDialog
      opened
      danger
      title="Delete this branch?"
      action="Delete"
      onClose={onClose}
      onConfirm={async () => {
        await remove.mutateAsync(branch.id);
        onDeleted();
      }}
    >
      {shortName(branch)}: its continuations and their returns are deleted. The episode stays.
    </ConfirmDialog>
  );
}
