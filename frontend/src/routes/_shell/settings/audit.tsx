import { useDocumentTitle } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { auditActionsQuery, auditQuery, type AuditFilter } from '@/api/audit';
import { ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { AuditFilterForm } from '@/features/audit/AuditFilterForm';
import { AuditTable } from '@/features/audit/AuditTable';
import { auditSearch } from '@/features/audit/search';

export const Route = createFileRoute('/_shell/settings/audit')({
  staticData: { settings: { label: 'Audit trail', order: 50, admin: true } },
  validateSearch: auditSearch,
  component: AuditPage,
});

/** Changes, sign-ins and failed sign-ins, for admins. */
function AuditPage() {
  useDocumentTitle('Audit trail · Callboard');
  const denied = useDenied('admin');
  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <h1 className="page-title">Audit trail</h1>
      {denied === undefined ? <Entries /> : <Empty>{denied}</Empty>}
    </div>
  );
}

function Entries() {
  const filter = Route.useSearch();
  const navigate = Route.useNavigate();
  const { data: actions } = useQuery(auditActionsQuery);
  const pages = useInfiniteQuery(auditQuery(filter));
  const { data, error, refetch } = pages;
  const entries = data?.pages.flatMap(({ items }) => items);
  return (
    <>
      <AuditFilterForm
        filter={filter}
        actions={actions ?? []}
        onChange={(changed: AuditFilter) =>
          void navigate({ search: auditSearch({ ...filter, ...changed }), replace: true })
        }
      />
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!entries && !error && <Loading label="Loading the audit trail" lines={12} />}
      {entries?.length === 0 && <Empty>No matching entries.</Empty>}
      {entries && entries.length > 0 && <AuditTable entries={entries} />}
      <ShowMore query={pages} />
    </>
  );
}
