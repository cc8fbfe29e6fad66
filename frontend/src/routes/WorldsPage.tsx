import { NativeSelect, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { environmentsQuery } from '@/api/catalog';
import { Empty, Loading, Problem } from '@/components/feedback';
import { WorldsTable } from '@/features/worlds/WorldsTable';
import { defined } from '@/lib/defined';
import { plural } from '@/lib/format';
import { findWorlds } from '@/lib/world';

const route = getRouteApi('/frame/worlds');

export default function WorldsPage() {
  useDocumentTitle('Worlds · Callboard');
  const { q = '', family } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(environmentsQuery);
  const families = [...new Set(data?.map((world) => world.family))];
  const found = findWorlds(data ?? [], q).filter((world) => !family || world.family === family);
  const change = (next: { q?: string; family?: string }, replace: boolean): void => {
    const { q: words, family: one } = { q, family, ...next };
    void navigate({ search: defined({ q: words || undefined, family: one || undefined }), replace });
  };
  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <h1 className="page-title">Worlds</h1>
      <div className="row wrap">
        <TextInput
          type="search"
          aria-label="Search worlds"
          placeholder="Search worlds"
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
          {data ? plural(found.length, 'world') : ''}
        </span>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the worlds" lines={12} />}
      {data && found.length === 0 && <Empty>No world fits.</Empty>}
      {found.length > 0 && <WorldsTable worlds={found} />}
    </div>
  );
}
