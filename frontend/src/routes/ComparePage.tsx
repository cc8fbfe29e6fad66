import { useDocumentTitle } from '@mantine/hooks';
import { getRouteApi } from '@tanstack/react-router';
import { CompareView } from '@/features/compare/CompareView';
import { PageHead } from '@/features/views/PageHead';
import { useProject } from '@/lib/project';

const route = getRouteApi('/shell/compare');

export default function ComparePage() {
  useDocumentTitle('Compare · Callboard');
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [project] = useProject();
  return (
    <CompareView
      search={search}
      onSearch={(to, replace = false) => void navigate({ search: to, replace, resetScroll: false })}
      head={<PageHead state={{ page: 'compare', search }} project={project || undefined} />}
    />
  );
}
