import { Button, SegmentedControl, useMantineColorScheme } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { logOut, meQuery } from '@/api/session';
import { Problem } from '@/components/feedback';

const SCHEMES = [
  { value: 'auto', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

export default function SettingsPage() {
  useDocumentTitle('Settings · Callboard');
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { data: me, error } = useQuery(meQuery);
  const leave = useMutation({
    mutationFn: logOut,
    onSuccess: () => location.assign('/login'),
  });
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 640 }}>
      <h1 className="page-title">Settings</h1>
      <section className="panel" style={{ padding: 16, display: 'grid', gap: 8, justifyItems: 'start' }}>
        <h2 className="section-title">Appearance</h2>
        <SegmentedControl
          size="xs"
          aria-label="Appearance"
          value={colorScheme}
          data={SCHEMES}
          onChange={(value) => setColorScheme(value as 'auto' | 'light' | 'dark')}
        />
        <span className="muted">Kept in this browser.</span>
      </section>
      <section className="panel" style={{ padding: 16, display: 'grid', gap: 8, justifyItems: 'start' }}>
        <h2 className="section-title">Session</h2>
        {error && <Problem error={error} />}
        {me && (
          <span>
            Signed in as <b>{me.name}</b>, {me.role}.
          </span>
        )}
        <Button variant="default" loading={leave.isPending} onClick={() => leave.mutate()}>
          Sign out
        </Button>
        <span className="muted">
          Runs go on. To come back in, open a new link from the machine Callboard runs on.
        </span>
        {leave.isError && <Problem error={leave.error} />}
      </section>
    </div>
  );
}
