import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '@/api/account';
import { Empty, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { UsersPanel } from '@/features/account/UsersPanel';
import { createFileRoute } from '@tanstack/react-router';

export const Route = createFileRoute('/_shell/settings/users')({
  staticData: { settings: { label: 'Users', order: 30, admin: true } },
  component: UsersPage,
});

/** The users of the installation, for admins. */
function UsersPage() {
  useDocumentTitle('Users · Callboard');
  const denied = useDenied('admin');
  const { data: me, error, refetch } = useQuery(meQuery);
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 800 }}>
      <h1 className="page-title">Users</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {denied !== undefined && <Empty>{denied}</Empty>}
      {me && denied === undefined && <UsersPanel me={me.id} />}
    </div>
  );
}
