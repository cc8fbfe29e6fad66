import { useDocumentTitle } from '@mantine/hooks';
import { createFileRoute } from '@tanstack/react-router';
import { useDenied } from '@/components/permission';
import classes from '@/features/alerts/alerts.module.css';
import { Inbox } from '@/features/alerts/Inbox';
import { RulesPanel } from '@/features/alerts/RulesPanel';
import { TargetsPanel } from '@/features/alerts/TargetsPanel';
import { checked, defined, flag, idOf, type Unchecked } from '@/lib/search';

const validateSearch = (search: Unchecked) =>
  checked({
    /** Whether only unread alerts are listed. */
    unread: flag(search.unread),
    /** The run that a new rule is about. */
    run: idOf(search.run),
  });

export const Route = createFileRoute('/_shell/alerts')({
  staticData: { palette: { label: 'Alerts', order: 20 } },
  validateSearch,
  component: AlertsPage,
});

/** The inbox beside the user's rules and, for admins, the targets. */
function AlertsPage() {
  useDocumentTitle('Alerts · Callboard');
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  const denied = useDenied('admin');
  return (
    <div className={`page ${classes.page}`}>
      <h1 className="page-title">Alerts</h1>
      <Inbox
        unread={search.unread ?? false}
        onUnread={(unread) =>
          void navigate({ search: defined({ ...search, unread: unread || undefined }), replace: true })
        }
      />
      <div className={classes.side}>
        <RulesPanel
          run={search.run}
          onClosed={() => {
            if (search.run !== undefined)
              void navigate({ search: defined({ unread: search.unread }), replace: true });
          }}
        />
        {denied === undefined && <TargetsPanel />}
      </div>
    </div>
  );
}
