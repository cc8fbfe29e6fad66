import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import { Empty, Loading, Problem } from '@/components/feedback';
import { HostPanel } from '@/features/hosts/HostPanel';
import { WaitingRuns } from '@/features/hosts/WaitingRuns';
import { createFileRoute } from '@tanstack/react-router';
import { IconServer } from '@tabler/icons-react';

export const Route = createFileRoute('/_shell/machines')({
  staticData: { nav: { label: 'Machines', icon: IconServer, order: 70 } },
  component: HostsPage,
});

function HostsPage() {
  useDocumentTitle('Machines · Callboard');
  const { data, error, refetch } = useQuery(hostsQuery);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Machines</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the hosts" lines={6} />}
      {data && <WaitingRuns hosts={data} />}
      {data?.items.length === 0 && (
        <Empty>
          No worker has registered. <code>callboard up</code> starts one on this machine;{' '}
          <code>callboard worker</code> starts one on any machine that can reach the database and Redis.
        </Empty>
      )}
      {data?.items.map((host) => (
        <HostPanel key={host.id} host={host} />
      ))}
    </div>
  );
}
