import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link, Outlet, useLocation } from '@tanstack/react-router';
import { useLayoutEffect, useRef } from 'react';
import { meQuery } from '@/api/account';
import classes from '@/features/account/account.module.css';

export const Route = createFileRoute('/_shell/settings')({ component: SettingsFrame });

const PAGES = [
  { to: '/settings', label: 'Account', admin: false },
  { to: '/settings/tokens', label: 'Tokens', admin: false },
  { to: '/settings/users', label: 'Users', admin: true },
  { to: '/settings/storage', label: 'Storage', admin: false },
  { to: '/settings/audit', label: 'Audit trail', admin: true },
  { to: '/settings/shortcuts', label: 'Keyboard shortcuts', admin: false },
] as const;

/** The settings: their pages beside a navigation; those for admins are shown to admins only. */
function SettingsFrame() {
  const { data: me } = useQuery(meQuery);
  const { pathname } = useLocation();
  const nav = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const row = nav.current;
    const link = row?.querySelector<HTMLElement>('[aria-current=page]');
    // scrollIntoView would scroll the page as well.
    if (row && link) row.scrollLeft = link.offsetLeft + (link.offsetWidth - row.clientWidth) / 2;
  }, [pathname, me]);
  return (
    <div className={classes.settings}>
      <nav ref={nav} aria-label="Settings" className={`scroll-x ${classes.side}`}>
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
