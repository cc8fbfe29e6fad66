import { useDebouncedCallback, useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { keys } from '@/api/keys';
import {
  isReplayable,
  readRecordingTrace,
  recordingFileUrl,
  recordingQuery,
  recordingVideoUrl,
  type Recording,
} from '@/api/play';
import { sourceAt } from '@/components/chart/export/source';
import { useDownload } from '@/components/download';
import { Empty, Loading, PageProblem, titleOf } from '@/components/feedback';
import { AgentChoice } from '@/features/play/AgentChoice';
import { PlayFromHere } from '@/features/play/PlayFromHere';
import { SourceLink } from '@/features/play/SourceLink';
import { EpisodePlayer } from '@/features/replay/EpisodePlayer';
import { MAX_POINTS, type Source } from '@/features/replay/source';
import { shortEnvironmentName } from '@/lib/environments';
import { formatExact, formatInteger, formatScore } from '@/lib/format';
import { replaySearch } from '@/features/replay/search';

export const Route = createFileRoute('/_shell/play/recordings/$recordingId')({
  validateSearch: replaySearch,
  component: RecordingPage,
});

const DEBOUNCE_MS = 300;

const sourceOfRecording = ({ id, length_steps, episode_return, player }: Recording): Source => ({
  id,
  steps: length_steps,
  videoUrl: recordingVideoUrl(id),
  videoKey: keys.recording(id, 'video'),
  traceKey: keys.recording(id, 'trace'),
  readTrace: readRecordingTrace,
  label: `Video of the game of ${player} with a score of ${formatScore(episode_return)}`,
  byAgent: false,
  hasObservations: false,
  timeline: sourceAt({ name: 'recording', title: 'Timeline of the game' }, '/api/v1/figures/recording', {
    recording: id,
    points: MAX_POINTS,
  }),
});

/** The replay of a game that a person or a script has played. */
function RecordingPage() {
  const { recordingId } = Route.useParams();
  const { at } = Route.useSearch();
  const navigate = Route.useNavigate();
  // Debounced: browsers limit the rate of URL changes.
  const saveStep = useDebouncedCallback(
    (step: number) => void navigate({ search: { at: step }, replace: true, resetScroll: false }),
    DEBOUNCE_MS,
  );
  const { data: recording, error, refetch } = useQuery(recordingQuery(recordingId));
  const [chosen, setChosen] = useState<string | null>();
  const { onClick, problem } = useDownload();
  const name = recording && shortEnvironmentName(recording.environment);
  const agent = chosen === undefined ? (recording?.source?.run_id ?? null) : chosen;
  const title = name ? `Game of ${name}` : titleOf(error, 'Game');
  useDocumentTitle(`${title} · Callboard`);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <header className="row wrap">
        <h1 className="page-title">{title}</h1>
        {recording && (
          <>
            <span className="muted">
              by {recording.player}, score <b className="num">{formatScore(recording.episode_return)}</b>,{' '}
              <span className="num">{formatInteger(recording.length_frames)}</span> frames,{' '}
              {recording.finished ? 'played to its end' : 'stopped before the end'},{' '}
              {recording.protocol.replace('_', ' ')}, {formatExact(recording.started_at)}
            </span>
            <SourceLink source={recording.source} />
            <a href={recordingFileUrl(recording.id)} onClick={onClick}>
              Export
            </a>
            <Link to="/play" search={{ environment: recording.environment }}>
              Play {name} yourself
            </Link>
          </>
        )}
        <Link to="/play">All games</Link>
      </header>
      {problem}
      {error && <PageProblem error={error} onRetry={() => void refetch()} back="/play" />}
      {!recording && !error && <Loading label="Loading the game" lines={10} />}
      {recording && !isReplayable(recording) && (
        <div className="panel">
          <Empty>
            {recording.ended_at === null
              ? 'The game is being played. It can be replayed when it has ended.'
              : 'The game has ended before its first decision: there is nothing to replay.'}
          </Empty>
        </div>
      )}
      {recording && isReplayable(recording) && (
        <>
          <section className="panel" style={{ padding: 16 }}>
            <EpisodePlayer
              key={recordingId}
              source={sourceOfRecording(recording)}
              environment={recording.environment}
              large
              at={at}
              onAt={saveStep}
              atStep={(step) => (
                <>
                  <AgentChoice environment={recording.environment} value={agent} onChange={setChosen} />
                  <PlayFromHere from={{ recording: recordingId }} step={step} agent={agent ?? undefined} />
                </>
              )}
            />
          </section>
          <p className="muted wide" style={{ margin: 0 }}>
            Space plays and pauses. The arrow keys, comma and full stop move by one agent step; on the
            timeline, Shift moves by ten. 1 to 8 set the speed. R jumps to the next reward and L to the next
            lost life (with Shift, the previous one).
          </p>
        </>
      )}
    </div>
  );
}
