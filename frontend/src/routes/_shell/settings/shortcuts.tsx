import { useDocumentTitle } from '@mantine/hooks';
import { ShortcutList } from '@/components/Shortcuts';
import classes from '@/features/account/account.module.css';
import { createFileRoute } from '@tanstack/react-router';

export const Route = createFileRoute('/_shell/settings/shortcuts')({
  staticData: { settings: { label: 'Keyboard shortcuts', order: 60 } },
  component: ShortcutsPage,
});

/** All keyboard shortcuts, which `?` shows on every page. */
function ShortcutsPage() {
  useDocumentTitle('Keyboard shortcuts · Callboard');
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 800 }}>
      <h1 className="page-title">Keyboard shortcuts</h1>
      <section className={`panel ${classes.panel}`} aria-label="Keyboard shortcuts">
        <ShortcutList />
      </section>
    </div>
  );
}
