import { Button, SegmentedControl, useMantineColorScheme } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { logOut, meQuery } from '@/api/account';
import { Problem } from '@/components/feedback';
import classes from '@/features/account/account.module.css';
import { PasswordPanel } from '@/features/account/PasswordPanel';
import { SessionsPanel } from '@/features/account/SessionsPanel';
import { served } from '@/lib/base';
import { createFileRoute } from '@tanstack/react-router';
import { IconSettings } from '@tabler/icons-react';

export const Route = createFileRoute('/_shell/settings/')({
  staticData: {
    nav: { label: 'Settings', icon: IconSettings, order: 80, underMore: true },
    settings: { label: 'Account', order: 10 },
  },
  component: AccountPage,
});

const SCHEMES = [
  { value: 'auto', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const;

/** Theme, sessions and password of the user. */
function AccountPage() {
  useDocumentTitle('Account · Callboard');
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { data: me, error, refetch } = useQuery(meQuery);
  // A full page load, so that nothing of the old session remains.
  const signOut = useMutation({ mutationFn: logOut, onSuccess: () => location.assign(served('/login')) });
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 800 }}>
      <h1 className="page-title">Account</h1>
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
        <span className="muted">Stored in this browser.</span>
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
        <Button variant="default" loading={signOut.isPending} onClick={() => signOut.mutate()}>
          Sign out
        </Button>
        {signOut.isError && <Problem error={signOut.error} />}
      </section>
      <PasswordPanel />
      {/* Last: it grows when the sessions are loaded, after the rest is drawn. */}
      <SessionsPanel />
    </div>
  );
}
