import { useDocumentTitle } from '@mantine/hooks';
import { IconListDetails } from '@tabler/icons-react';
import { createFileRoute } from '@tanstack/react-router';
import { lazy, Suspense, useEffect } from 'react';
import { workspaceSearch } from '@/components/run/search';
import { Loading } from '@/components/feedback';
import { type PageState, stateOf } from '@/features/views/document';
import { PageHead } from '@/features/views/PageHead';
import { useProject } from '@/lib/project';
import { defined } from '@/lib/search';
import { withLayout } from '@/routes/-layout';
import { RunsView } from '@/routes/-RunsView';

const CompareView = lazy(async () => ({ default: (await import('@/routes/-CompareView')).CompareView }));

export const Route = createFileRoute('/_shell/')({
  validateSearch: workspaceSearch,
  staticData: {
    nav: { label: 'Runs', icon: IconListDetails, order: 10, covers: ['/runs/', '/deleted', '/w/'] },
  },
  component: Workspace,
});

/** The list of runs, alone or beside the charts of what is compared. */
function Workspace() {
  const address = Route.useSearch();
  const navigate = Route.useNavigate();
  const [chosen, choose] = useProject();
  const state = stateOf(address);
  const isAlone = state.page === 'runs';
  const project = address.project ?? (chosen || undefined);
  const isAdded = isAlone && address.project === undefined && project !== undefined;
  useDocumentTitle(`${isAlone ? 'Runs' : 'Compare'} · Callboard`);
  useEffect(() => {
    // As with columns: the address shares what this browser shows.
    if (isAdded) void navigate({ search: { ...address, project }, replace: true, resetScroll: false });
  });
  const show = (next: PageState, replace: boolean, resetScroll = false): void =>
    void navigate({ search: next.search, replace, resetScroll });
  const head = (
    <PageHead
      state={isAlone ? { page: 'runs', search: defined({ ...state.search, project }) } : state}
      project={project}
      onLayout={(layout) => show(withLayout(state, layout, project), false)}
    />
  );
  if (state.page === 'runs')
    return (
      <RunsView
        search={defined({ ...state.search, project })}
        head={head}
        onSearch={(search, replace = false) => {
          if (search.project === undefined && chosen !== '') choose('');
          show({ page: 'runs', search }, replace, !replace);
        }}
      />
    );
  return (
    <Suspense
      fallback={
        <div className="page">
          {head}
          <Loading label="Loading the page" lines={8} />
        </div>
      }
    >
      <CompareView
        search={state.search}
        head={head}
        onSearch={(search, replace = false) => show({ page: 'compare', search }, replace)}
      />
    </Suspense>
  );
}
