import { useDocumentTitle } from '@mantine/hooks';
import { useInfiniteQuery } from '@tanstack/react-query';
import { deletedRunsQuery } from '@/api/runs';
import { ButtonLink, ShowMore, TextLink } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { DeletedRuns } from '@/features/runs/DeletedRuns';
import { createFileRoute } from '@tanstack/react-router';

export const Route = createFileRoute('/_shell/deleted')({
  staticData: { palette: { label: 'Recently deleted runs', order: 30 } },
  component: DeletedPage,
});

function DeletedPage() {
  useDocumentTitle('Recently deleted · Callboard');
  const query = useInfiniteQuery(deletedRunsQuery);
  const { data, error, refetch } = query;
  const runs = data?.pages.flatMap(({ items }) => items);
  return (
    <div className="page" style={{ display: 'grid', gap: 12, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <TextLink to="/">Runs</TextLink>
      <h1 className="page-title">Recently deleted</h1>
      <p className="muted" style={{ margin: 0 }}>
        A run that was deleted on these pages can be restored for an hour, with everything that belongs to it.
        Then its files are removed.
      </p>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!runs && !error && <Loading label="Loading the deleted runs" lines={4} />}
      {runs?.length === 0 && (
        <div className="panel">
          <Empty
            action={
              <ButtonLink to="/" variant="default">
                Back to runs
              </ButtonLink>
            }
          >
            No run was deleted within the last hour.
          </Empty>
        </div>
      )}
      {runs && runs.length > 0 && <DeletedRuns runs={runs} total={data?.pages[0]?.total ?? runs.length} />}
      <ShowMore query={query} />
    </div>
  );
}
