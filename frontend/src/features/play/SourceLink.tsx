import { Link } from '@tanstack/react-router';
import type { PlaySession, Recording } from '@/api/play';
import { formatInteger } from '@/lib/format';

type Props = { source: Recording['source']; agent?: PlaySession['agent'] };

/** Where a game goes on from, and which agent can act in it; absent for an ordinary game. */
export function SourceLink({ source, agent = null }: Props) {
  if (source === null && agent === null) return null;
  return (
    <span className="muted">
      {source !== null && (
        <>
          goes on from{' '}
          {source.run_id != null ? (
            <Link
              to="/runs/$runId/episodes/$episodeId"
              params={{ runId: source.run_id, episodeId: source.id }}
              search={{ at: source.decision }}
            >
              decision {formatInteger(source.decision + 1)} of an episode
            </Link>
          ) : (
            <Link
              to="/play/recordings/$recordingId"
              params={{ recordingId: source.id }}
              search={{ at: source.decision }}
            >
              decision {formatInteger(source.decision + 1)} of a game
            </Link>
          )}
        </>
      )}
      {source !== null && agent !== null && ', '}
      {agent !== null && (
        <>
          with the agent of{' '}
          <Link to="/runs/$runId" params={{ runId: agent.run_id }}>
            a run
          </Link>{' '}
          at <span className="num">{formatInteger(agent.agent_steps)}</span> agent steps
        </>
      )}
    </span>
  );
}
