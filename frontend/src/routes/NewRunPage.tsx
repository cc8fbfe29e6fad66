import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { algorithmsQuery, environmentsQuery } from '@/api/catalog';
import { runQuery, type Run } from '@/api/runs';
import { Loading, PageProblem } from '@/components/feedback';
import { draftFrom, newDraft } from '@/features/launch/draft';
import { LaunchForm } from '@/features/launch/LaunchForm';

const route = getRouteApi('/frame/new');

export default function NewRunPage() {
  const { from, fork, checkpoint, environment, algorithm } = route.useSearch();
  const navigate = route.useNavigate();
  useDocumentTitle('New run · Callboard');
  const algorithms = useQuery(algorithmsQuery);
  const environments = useQuery(environmentsQuery);
  const source = fork ?? from;
  const original = useQuery({ ...runQuery(source ?? ''), enabled: source !== undefined });

  const onStarted = ([first, ...others]: Run[]): void => {
    if (!first) return;
    void (others.length > 0
      ? navigate({ to: '/', search: { selected: [first, ...others].map(({ id }) => id).join(',') } })
      : navigate({ to: '/runs/$runId', params: { runId: first.id } }));
  };

  const form = () => {
    const error = algorithms.error ?? environments.error ?? original.error;
    if (error) return <PageProblem error={error} onRetry={() => location.reload()} />;
    if (!algorithms.data || !environments.data || (source && !original.data)) {
      return <Loading label="Loading the catalogue" lines={10} />;
    }
    const catalogue = { algorithms: algorithms.data, environments: environments.data };
    const asked = { ...(environment ? { environment } : {}), ...(algorithm ? { algorithm } : {}) };
    const start = original.data
      ? draftFrom(catalogue, original.data, fork ? 'fork' : 'copy')
      : newDraft(catalogue, asked);
    return (
      <LaunchForm
        key={`${source ?? ''} ${fork ?? ''} ${environment ?? ''} ${algorithm ?? ''}`}
        catalogue={catalogue}
        start={start}
        parent={fork ? original.data : undefined}
        checkpoint={checkpoint}
        onStarted={onStarted}
      />
    );
  };

  return (
    <div className="page">
      <h1 className="page-title" style={{ marginBottom: 16 }}>
        {original.data ? `${fork ? 'Fork of' : 'New run, as'} ${original.data.name}` : 'New run'}
      </h1>
      {form()}
    </div>
  );
}
