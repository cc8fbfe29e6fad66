import { Button, SegmentedControl, useMantineColorScheme } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { logOut, meQuery } from '@/api/account';
import { ButtonLink } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { ShortcutList } from '@/components/Shortcuts';
import classes from '@/features/account/account.module.css';
import { PasswordPanel } from '@/features/account/PasswordPanel';
import { SessionsPanel } from '@/features/account/SessionsPanel';
import { TokensPanel } from '@/features/account/TokensPanel';
import { UsersPanel } from '@/features/account/UsersPanel';

const SCHEMES = [
  { value: 'auto', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const;

export default function SettingsPage() {
  useDocumentTitle('Settings · Callboard');
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { data: me, error, refetch } = useQuery(meQuery);
  // A full page load, so that nothing of the old session remains.
  const signOut = useMutation({ mutationFn: logOut, onSuccess: () => location.assign('/login') });
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
      <SessionsPanel />
      <PasswordPanel />
      {me && <TokensPanel role={me.role} />}
      <section className={`panel ${classes.panel}`} style={{ justifyItems: 'start' }}>
        <h2 className="section-title">Storage and retention</h2>
        <span>Storage usage and retention policies.</span>
        <ButtonLink to="/storage" variant="default">
          Show storage
        </ButtonLink>
      </section>
      {me?.role === 'admin' && (
        <>
          <UsersPanel me={me.id} />
          <section className={`panel ${classes.panel}`} style={{ justifyItems: 'start' }}>
            <h2 className="section-title">Audit trail</h2>
            <span>Changes, sign-ins and failed sign-in attempts.</span>
            <ButtonLink to="/settings/audit" variant="default">
              Show the audit trail
            </ButtonLink>
          </section>
        </>
      )}
      <section className={`panel ${classes.panel}`} style={{ justifyItems: 'start' }}>
        <h2 className="section-title">Keyboard shortcuts</h2>
        <ShortcutList />
      </section>
    </div>
  );
}
