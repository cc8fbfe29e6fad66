import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { algorithmsQuery, commandsQuery, environmentsQuery } from '@/api/catalogue';
import { runQuery, type Run } from '@/api/runs';
import { Loading, Missing, PageProblem } from '@/components/feedback';
import { draftFrom, newDraft } from '@/features/launch/draft';
import { LaunchForm } from '@/features/launch/LaunchForm';
import { checked, defined, flag, protocol, type Unchecked, text } from '@/lib/search';

const CommandForm = lazy(() => import('@/features/launch/CommandForm'));

const validateSearch = (search: Unchecked) =>
  checked({
    from: text(search.from),
    fork: text(search.fork),
    checkpoint: text(search.checkpoint),
    environment: text(search.environment),
    algorithm: text(search.algorithm),
    /** A host's command to start instead. */
    command: text(search.command),
    /** Protocol of the run's evaluations. */
    protocol: protocol(search.protocol),
    /** Whether all hyperparameters are shown. */
    all: flag(search.all),
  });

export const Route = createFileRoute('/_shell/new')({
  staticData: { palette: { label: 'New run', order: 10 } },
  validateSearch,
  component: NewRunPage,
});

/** The address of the list selects up to this many started runs by their ids; more are found by their group. */
const MAX_IDS = 20;

function NewRunPage() {
  const search = Route.useSearch();
  const { from, fork, checkpoint, environment, algorithm, command, protocol, all = false } = search;
  const navigate = Route.useNavigate();
  useDocumentTitle('New run · Callboard');
  const algorithms = useQuery(algorithmsQuery);
  const environments = useQuery(environmentsQuery);
  const sourceId = fork ?? from;
  const commands = useQuery(commandsQuery);
  const firstCommand = commands.data?.[0];
  const source = useQuery({ ...runQuery(sourceId ?? ''), enabled: sourceId !== undefined });

  const onStarted = (runs: Run[]): void => {
    const [first] = runs;
    if (!first) return;
    const { group } = first;
    const search =
      runs.length > MAX_IDS && group && !/["\\]/.test(group)
        ? { q: `group="${group}"` }
        : { selected: runs.map(({ id }) => id).join(',') };
    void (runs.length > 1
      ? navigate({ to: '/', search })
      : navigate({ to: '/runs/$runId', params: { runId: first.id } }));
  };

  const onSweepStarted = (sweepId: string): void =>
    void navigate({ to: '/sweeps/$sweepId', params: { sweepId } });

  const form = () => {
    if (command !== undefined) {
      const chosen = commands.data?.find(({ name }) => name === command);
      if (commands.error) return <PageProblem error={commands.error} onRetry={() => location.reload()} />;
      if (!commands.data) return <Loading label="Loading the commands" lines={10} />;
      if (!chosen) return <Missing detail={`no host has the command ${command}`} />;
      return (
        <Suspense fallback={<Loading label="Loading the form" lines={10} />}>
          <CommandForm
            key={`${chosen.name} ${chosen.definition}`}
            commands={commands.data}
            command={chosen}
            onCommand={(name) => void navigate({ search: { command: name }, replace: true })}
            onStarted={onStarted}
            onSweepStarted={onSweepStarted}
          />
        </Suspense>
      );
    }
    if (!algorithms.data || !environments.data || (sourceId && !source.data)) {
      const error = algorithms.error ?? environments.error ?? source.error;
      if (error) return <PageProblem error={error} onRetry={() => location.reload()} />;
      return <Loading label="Loading the catalogue" lines={10} />;
    }
    const catalogue = { algorithms: algorithms.data, environments: environments.data };
    if (environment !== undefined && !environments.data.some(({ id }) => id === environment)) {
      return <Missing detail={`environment ${environment} does not exist`} />;
    }
    if (algorithm !== undefined && !algorithms.data.some(({ id }) => id === algorithm)) {
      return <Missing detail={`algorithm ${algorithm} does not exist`} />;
    }
    const requested = defined({ environment, algorithm, protocol });
    const initialDraft = source.data
      ? draftFrom(catalogue, source.data, fork ? 'fork' : 'copy')
      : newDraft(catalogue, requested);
    const name = [fork ? 'fork' : 'new', sourceId, checkpoint, environment, algorithm, protocol]
      .filter(Boolean)
      .join(' ');
    return (
      <LaunchForm
        key={name}
        name={name}
        catalogue={catalogue}
        initialDraft={initialDraft}
        parent={fork ? source.data : undefined}
        checkpoint={checkpoint}
        all={all}
        onAll={(to) =>
          void navigate({
            search: (before) => defined({ ...before, all: to || undefined }),
            replace: true,
            resetScroll: false,
          })
        }
        onStarted={onStarted}
        onSweepStarted={onSweepStarted}
      />
    );
  };

  return (
    <div className="page">
      <h1 className="page-title" style={{ marginBottom: 16 }}>
        {source.data ? `${fork ? 'Fork' : 'Clone'} of ${source.data.name}` : 'New run'}
      </h1>
      {!sourceId && firstCommand && (
        <nav className="row wrap" aria-label="What to start" style={{ marginBottom: 16 }}>
          {command === undefined ? (
            <strong aria-current="page">An algorithm</strong>
          ) : (
            <Link to="/new">An algorithm</Link>
          )}
          {command === undefined ? (
            <Link to="/new" search={{ command: firstCommand.name }}>
              A script of yours
            </Link>
          ) : (
            <strong aria-current="page">A script of yours</strong>
          )}
        </nav>
      )}
      {form()}
    </div>
  );
}
