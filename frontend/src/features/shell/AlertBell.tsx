import { IconBell } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { unreadQuery } from '@/api/alerts';
import { notify, useNotifications } from '@/lib/notifications';
import classes from './shell.module.css';

const MAX_SHOWN = 99;

/** The link to the inbox, with the number of unread alerts; new ones are notifications where they are turned on. */
export function AlertBell() {
  const { data } = useQuery(unreadQuery);
  const notifications = useNotifications();
  const navigate = useNavigate();
  /** The latest alert that was there before. */
  const latest = useRef<string | null>(null);
  useEffect(() => {
    if (!data) return;
    const before = latest.current;
    // Ids sort by time.
    latest.current = [before ?? '', ...data.items.map(({ id }) => id)].sort().at(-1) ?? '';
    if (before === null || notifications !== 'on') return;
    for (const { id, title, text } of data.items)
      if (id > before) notify(id, title, text, () => void navigate({ to: '/alerts' }));
  }, [data, notifications, navigate]);
  const n = data?.unread ?? 0;
  return (
    <Link
      to="/alerts"
      className={classes.bell}
      aria-label={n === 0 ? 'Alerts' : `Alerts, ${n} unread`}
      title={n === 0 ? 'Alerts' : `${n} unread alerts`}
    >
      <IconBell size={18} stroke={1.75} aria-hidden="true" />
      {n > 0 && (
        <span className={classes.unread} aria-hidden="true">
          {n > MAX_SHOWN ? `${MAX_SHOWN}+` : n}
        </span>
      )}
    </Link>
  );
}
