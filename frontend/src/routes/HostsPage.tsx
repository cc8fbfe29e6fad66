import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import { Empty, Loading, Problem } from '@/components/feedback';
import { HostPanel } from '@/features/hosts/HostPanel';
import { plural } from '@/lib/format';
import { whyWaiting } from '@/lib/waiting';

export default function HostsPage() {
  useDocumentTitle('Hosts · Callboard');
  const { data, error, refetch } = useQuery(hostsQuery);
  const waiting = Object.entries(data?.waiting ?? {}).filter(([, count]) => count > 0);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Hosts</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the hosts" lines={6} />}
      {waiting.map(([queue, count]) => (
        <p key={queue} style={{ margin: 0 }}>
          {plural(count, 'run waits', 'runs wait')} in the queue <span className="num">{queue}</span>
          {whyWaiting(data?.items ?? [], queue)}
        </p>
      ))}
      {data?.items.length === 0 && (
        <Empty>
          No host has a worker. <code>callboard up</code> starts one on this machine;{' '}
          <code>callboard worker</code> starts one on any other that reaches the database and Redis.
        </Empty>
      )}
      {data?.items.map((host) => (
        <HostPanel key={host.id} host={host} />
      ))}
    </div>
  );
}
