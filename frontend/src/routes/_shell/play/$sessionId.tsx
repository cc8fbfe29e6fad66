import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { meQuery } from '@/api/account';
import { playSessionQuery } from '@/api/play';
import { Loading, PageProblem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { PlayView } from '@/features/play/PlayView';
import { SourceLink } from '@/features/play/SourceLink';
import { shortEnvironmentName } from '@/lib/environments';

export const Route = createFileRoute('/_shell/play/$sessionId')({ component: PlaySessionPage });

function PlaySessionPage() {
  const { sessionId } = Route.useParams();
  const { data: session, error, refetch } = useQuery(playSessionQuery(sessionId));
  const { data: me } = useQuery(meQuery);
  const denied = useDenied();
  const name = session ? shortEnvironmentName(session.environment) : 'Play';
  useDocumentTitle(`${name} · Play · Callboard`);
  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <div className="row wrap">
        <h1 className="page-title">{name}</h1>
        {session && <SourceLink source={session.source} agent={session.agent} />}
        <Link to="/play">All games</Link>
      </div>
      {error && <PageProblem error={error} onRetry={() => void refetch()} back="/play" />}
      {!session && !error && <Loading label="Loading the session" lines={8} />}
      {session && me && (
        <PlayView
          key={session.id}
          session={session}
          mine={session.user_id === me.id && denied === undefined}
        />
      )}
    </div>
  );
}
