import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { meQuery } from '@/api/account';
import classes from './account.module.css';

const PAGES = [
  { to: '/settings', label: 'Account', admin: false },
  { to: '/settings/tokens', label: 'Tokens', admin: false },
  { to: '/settings/users', label: 'Users', admin: true },
  { to: '/settings/storage', label: 'Storage', admin: false },
  { to: '/settings/audit', label: 'Audit trail', admin: true },
  { to: '/settings/shortcuts', label: 'Keyboard shortcuts', admin: false },
] as const;

/** The settings: their pages beside a navigation; those for admins are shown to admins only. */
export default function SettingsFrame() {
  const { data: me } = useQuery(meQuery);
  return (
    <div className={classes.settings}>
      <nav aria-label="Settings" className={classes.side}>
        {PAGES.filter(({ admin }) => !admin || me?.role === 'admin').map(({ to, label }) => (
          <Link key={to} to={to} activeOptions={{ exact: true, includeSearch: false }}>
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </div>
  );
}
