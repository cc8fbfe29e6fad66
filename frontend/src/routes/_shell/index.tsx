import { useDocumentTitle } from '@mantine/hooks';
import { IconListDetails } from '@tabler/icons-react';
import { createFileRoute } from '@tanstack/react-router';
import { useEffect } from 'react';
import { runsSearch } from '@/components/run/search';
import type { RunsSearch } from '@/features/runs/filters';
import { PageHead } from '@/features/views/PageHead';
import { useProject } from '@/lib/project';
import { RunsView } from '@/routes/-RunsView';

export const Route = createFileRoute('/_shell/')({
  validateSearch: runsSearch,
  staticData: {
    nav: { label: 'Runs', icon: IconListDetails, order: 10, covers: ['/runs/', '/deleted', '/w/'] },
  },
  component: RunsPage,
});

/** All runs, or those of the chosen project. */
function RunsPage() {
  const address = Route.useSearch();
  const navigate = Route.useNavigate();
  const [chosen, choose] = useProject();
  useDocumentTitle('Runs · Callboard');
  const isChosen = address.project === undefined && chosen !== '';
  const search: RunsSearch = isChosen ? { ...address, project: chosen } : address;
  const change = (to: RunsSearch, replace = false): void => {
    if (to.project === undefined && chosen !== '') choose('');
    void navigate({ search: to, replace, resetScroll: !replace });
  };
  useEffect(() => {
    // As with columns: the address shares what this browser shows.
    if (isChosen)
      void navigate({ search: { ...address, project: chosen }, replace: true, resetScroll: false });
  });
  const state = { page: 'runs', search } as const;
  return (
    <RunsView search={search} onSearch={change} head={<PageHead state={state} project={search.project} />} />
  );
}
