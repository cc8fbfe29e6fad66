import { Button, SegmentedControl, useMantineColorScheme } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { logOut, meQuery } from '@/api/session';
import { Problem } from '@/components/feedback';
import classes from '@/features/account/account.module.css';
import { PasswordPanel } from '@/features/account/PasswordPanel';
import { TokensPanel } from '@/features/account/TokensPanel';
import { UsersPanel } from '@/features/account/UsersPanel';

const SCHEMES = [
  { value: 'auto', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const;

export default function SettingsPage() {
  useDocumentTitle('Settings · Callboard');
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { data: me, error, refetch } = useQuery(meQuery);
  // Loaded anew, so that nothing of the old session stays.
  const leave = useMutation({ mutationFn: logOut, onSuccess: () => location.assign('/login') });
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 800 }}>
      <h1 className="page-title">Settings</h1>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      <section className={`panel ${classes.panel}`} style={{ justifyItems: 'start' }}>
        <h2 className="section-title">Appearance</h2>
        <SegmentedControl
          size="xs"
          aria-label="Appearance"
          value={colorScheme}
          data={[...SCHEMES]}
          onChange={setColorScheme}
        />
        <span className="muted">Kept in this browser.</span>
      </section>
      <section className={`panel ${classes.panel}`} style={{ justifyItems: 'start' }}>
        <h2 className="section-title">Session</h2>
        <span>
          Signed in
          {me && (
            <>
              {' '}
              as <b>{me.name}</b>, {me.role}
            </>
          )}
          .
        </span>
        <Button variant="default" loading={leave.isPending} onClick={() => leave.mutate()}>
          Sign out
        </Button>
        {leave.isError && <Problem error={leave.error} />}
      </section>
      <PasswordPanel />
      {me && <TokensPanel role={me.role} />}
      {me?.role === 'admin' && <UsersPanel me={me.id} />}
    </div>
  );
}
