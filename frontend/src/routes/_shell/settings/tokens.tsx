import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '@/api/account';
import { Problem } from '@/components/feedback';
import { TokensPanel } from '@/features/account/TokensPanel';
import { createFileRoute } from '@tanstack/react-router';

export const Route = createFileRoute('/_shell/settings/tokens')({
  staticData: { settings: { label: 'Tokens', order: 20 } },
  component: TokensPage,
});

/** The user's tokens for scripts. */
function TokensPage() {
  useDocumentTitle('Tokens · Callboard');
  const { data: me, error, refetch } = useQuery(meQuery);
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 1100 }}>
      <h1 className="page-title">Tokens</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {me && <TokensPanel role={me.role} />}
    </div>
  );
}
