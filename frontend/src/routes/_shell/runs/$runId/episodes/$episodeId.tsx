import { Button } from '@mantine/core';
import { useDebouncedCallback, useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useState } from 'react';
import { environmentsQuery } from '@/api/catalogue';
import { episodeQuery } from '@/api/runResources';
import { runQuery } from '@/api/runs';
import { Loading, PageProblem, titleOf } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { PlayFromHere } from '@/features/play/PlayFromHere';
import { EpisodePlayer } from '@/features/replay/EpisodePlayer';
import { sourceOfEpisode } from '@/features/replay/source';
import { learnerOf } from '@/features/replay/trace';
import { StepFollower } from '@/features/saliency/StepFollower';
import { isPlayable } from '@/lib/environments';
import { useStepTaken } from '@/lib/firstSteps';
import { formatScore, formatInteger } from '@/lib/format';
import { useFullSizeKey } from '@/lib/hooks';
import { defined } from '@/lib/search';
import { replaySearch } from '@/features/replay/search';

export const Route = createFileRoute('/_shell/runs/$runId/episodes/$episodeId')({
  validateSearch: replaySearch,
  component: ReplayPage,
});

const DEBOUNCE_MS = 300;

const SaliencyPanel = lazy(() => import('@/features/saliency/SaliencyPanel'));
const BranchesPanel = lazy(() => import('@/features/branches/BranchesPanel'));

/** The replay of one episode. */
function ReplayPage() {
  const { runId, episodeId } = Route.useParams();
  const { at, branch } = Route.useSearch();
  const navigate = Route.useNavigate();
  // Debounced: browsers limit the rate of URL changes.
  const saveStep = useDebouncedCallback(
    (step: number) =>
      void navigate({ search: (before) => ({ ...before, at: step }), replace: true, resetScroll: false }),
    DEBOUNCE_MS,
  );
  useFullSizeKey(
    () => void navigate({ to: '/runs/$runId', params: { runId }, search: { episode: episodeId } }),
  );
  const denied = useDenied();
  const [branchFrom, setBranchFrom] = useState<number | null>(null);
  const [explained, setExplained] = useState<number | null>(null);
  const run = useQuery(runQuery(runId));
  const episode = useQuery(episodeQuery(runId, episodeId));
  useStepTaken('replay', episode.isSuccess);
  const environments = useQuery(environmentsQuery);
  const environment = environments.data?.find(({ id }) => id === run.data?.environment);
  const playable = environment !== undefined && isPlayable(environment);
  const name = run.data?.name;
  const { config, environment_config: environmentConfig } = run.data?.spec ?? {};
  const learner = useMemo(() => learnerOf(config, environmentConfig), [config, environmentConfig]);
  const error = run.error ?? episode.error;
  // The heading shows all of them: each that came later would move what is below it. A failed query is pending again
  // with its next attempt, which must not end the replay.
  const isComplete = episode.data !== undefined && run.isFetched && environments.isFetched;
  useDocumentTitle(
    error ? `${titleOf(error, 'Episode')} · Callboard` : `Episode${name ? ` of ${name}` : ''} · Callboard`,
  );
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <header className="row wrap">
        <h1 className="page-title">
          {titleOf(error, 'Episode')}
          {isComplete && name && !error && (
            <>
              {' of '}
              <Link to="/runs/$runId" params={{ runId }}>
                {name}
              </Link>
            </>
          )}
        </h1>
        {isComplete && (
          <span className="muted">
            {episode.data.kind}, return <b className="num">{formatScore(episode.data.episode_return)}</b>,
            ended at agent step <span className="num">{formatInteger(episode.data.agent_steps)}</span> of the
            run, seed <span className="num">{episode.data.seed}</span>
          </span>
        )}
        {isComplete && !error && playable && (
          <Link to="/play" search={{ environment: environment.id }}>
            Play {environment.title} yourself
          </Link>
        )}
      </header>
      {error && (
        <PageProblem error={error} onRetry={() => void Promise.all([run.refetch(), episode.refetch()])} />
      )}
      {!isComplete && !error && <Loading label="Loading the episode" lines={10} />}
      {isComplete && (
        <>
          <section className="panel" style={{ padding: 16 }}>
            <EpisodePlayer
              key={episodeId}
              source={sourceOfEpisode(episode.data)}
              environment={run.data?.environment}
              learner={learner}
              large
              at={at}
              onAt={saveStep}
              atStep={(step) => (
                <div className="row wrap">
                  {playable && <PlayFromHere from={{ episode: episodeId }} step={step} agent={runId} />}
                  <PermittedButton variant="default" denied={denied} onClick={() => setBranchFrom(step)}>
                    Branch from here
                  </PermittedButton>
                  {environment?.observation === 'pixels' && (
                    <Button
                      variant="default"
                      aria-pressed={explained !== null}
                      title="Where the network’s input matters to its policy and V"
                      onClick={() => setExplained(explained === null ? step : null)}
                    >
                      Saliency
                    </Button>
                  )}
                  {explained !== null && <StepFollower step={step} onSettled={setExplained} />}
                </div>
              )}
            />
          </section>
          <p className="muted wide" style={{ margin: 0 }}>
            Space plays and pauses. The arrow keys, comma and full stop move by one agent step; on the
            timeline, Shift moves by ten. 1 to 8 set the speed. R jumps to the next reward and L to the next
            lost life (with Shift, the previous one); E jumps to the largest value error, and F goes back to
            the run.
          </p>
          {explained !== null && (
            <Suspense>
              <SaliencyPanel
                run={runId}
                episode={episodeId}
                decision={explained}
                onClose={() => setExplained(null)}
              />
            </Suspense>
          )}
          {run.data && (
            <Suspense>
              <BranchesPanel
                key={episodeId}
                run={run.data}
                episode={episode.data}
                selected={branch}
                onSelect={(id) =>
                  void navigate({
                    search: (before) => defined({ ...before, branch: id }),
                    replace: true,
                    resetScroll: false,
                  })
                }
                from={branchFrom}
                onClose={() => setBranchFrom(null)}
              />
            </Suspense>
          )}
        </>
      )}
    </div>
  );
}
