import { NativeSelect, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { environmentsQuery } from '@/api/catalogue';
import { hostsQuery } from '@/api/hosts';
import { Empty, Loading, Problem } from '@/components/feedback';
import { EnvironmentsTable } from '@/features/environments/EnvironmentsTable';
import { findEnvironments } from '@/lib/environments';
import { plural } from '@/lib/format';
import { defined } from '@/lib/search';

const route = getRouteApi('/shell/environments');

export default function EnvironmentsPage() {
  useDocumentTitle('Environments · Callboard');
  const { q = '', family } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(environmentsQuery);
  const { data: hosts } = useQuery(hostsQuery);
  const families = [...new Set(data?.map((environment) => environment.family))];
  const found = findEnvironments(data ?? [], q).filter((each) => !family || each.family === family);
  const change = (to: { q?: string; family?: string }, replace: boolean): void => {
    const next = { q, family, ...to };
    void navigate({
      search: defined({ q: next.q || undefined, family: next.family || undefined }),
      replace,
    });
  };
  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <h1 className="page-title">Environments</h1>
      <div className="row wrap">
        <TextInput
          type="search"
          aria-label="Search environments"
          placeholder="Search environments"
          leftSection={<IconSearch size={14} aria-hidden="true" />}
          value={q}
          onChange={({ currentTarget }) => change({ q: currentTarget.value }, true)}
        />
        {families.length > 1 && (
          <NativeSelect
            size="xs"
            aria-label="Family"
            value={family ?? ''}
            data={[{ value: '', label: 'All families' }, ...families]}
            onChange={({ currentTarget }) => change({ family: currentTarget.value }, false)}
          />
        )}
        <span className="muted" role="status">
          {data ? plural(found.length, 'environment') : ''}
        </span>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the environments" lines={12} />}
      {data && found.length === 0 && <Empty>No matching environments.</Empty>}
      {found.length > 0 && <EnvironmentsTable environments={found} hosts={hosts?.items} />}
    </div>
  );
}
