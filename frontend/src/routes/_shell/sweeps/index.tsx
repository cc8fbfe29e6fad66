import { useDocumentTitle } from '@mantine/hooks';
import { useInfiniteQuery } from '@tanstack/react-query';
import { sweepsQuery } from '@/api/sweeps';
import { ButtonLink, ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { SweepsTable } from '@/features/sweeps/SweepsTable';
import { createFileRoute } from '@tanstack/react-router';
import { IconChartDots } from '@tabler/icons-react';

export const Route = createFileRoute('/_shell/sweeps/')({
  staticData: { nav: { label: 'Sweeps', icon: IconChartDots, order: 30, underMore: true } },
  component: SweepsPage,
});

function SweepsPage() {
  useDocumentTitle('Sweeps · Callboard');
  const query = useInfiniteQuery(sweepsQuery);
  const { data, error, refetch } = query;
  const sweeps = data?.pages.flatMap(({ items }) => items);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Sweeps</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!sweeps && !error && <Loading label="Loading the sweeps" lines={6} />}
      {sweeps?.length === 0 && (
        <div className="panel">
          <Empty action={<ButtonLink to="/new">New run</ButtonLink>}>
            A sweep trains many combinations of hyperparameters with several seeds each, and adds no more
            seeds to combinations that are worse than another. To start one, give several values in one field
            of a new run, and choose “Start as a sweep”.
          </Empty>
        </div>
      )}
      {sweeps && sweeps.length > 0 && <SweepsTable sweeps={sweeps} />}
      <ShowMore query={query} />
    </div>
  );
}
