import { useDocumentTitle } from '@mantine/hooks';
import { IconChartLine } from '@tabler/icons-react';
import { createFileRoute } from '@tanstack/react-router';
import { compareSearch } from '@/components/run/search';
import { PageHead } from '@/features/views/PageHead';
import { useProject } from '@/lib/project';
import { CompareView } from '@/routes/-CompareView';

export const Route = createFileRoute('/_shell/compare')({
  validateSearch: compareSearch,
  staticData: { nav: { label: 'Compare', icon: IconChartLine, order: 20 } },
  component: ComparePage,
});

/** The runs of the address, or those that match its filter. */
function ComparePage() {
  useDocumentTitle('Compare · Callboard');
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  const [project] = useProject();
  return (
    <CompareView
      search={search}
      onSearch={(to, replace = false) => void navigate({ search: to, replace, resetScroll: false })}
      head={<PageHead state={{ page: 'compare', search }} project={project || undefined} />}
    />
  );
}
