import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link, Outlet, useLocation } from '@tanstack/react-router';
import { useLayoutEffect, useRef } from 'react';
import { meQuery } from '@/api/account';
import { usePlacedPages } from '@/components/placedPages';
import classes from '@/features/account/account.module.css';

export const Route = createFileRoute('/_shell/settings')({ component: SettingsFrame });

/** The settings: their pages beside a navigation; those for admins are shown to admins only. */
function SettingsFrame() {
  const { data: me } = useQuery(meQuery);
  const pages = usePlacedPages('settings');
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
        {pages
          .filter(({ admin }) => !admin || me?.role === 'admin')
          .map(({ to, label }) => (
            <Link key={to} to={to} activeOptions={{ exact: true, includeSearch: false }}>
              {label}
            </Link>
          ))}
      </nav>
      <Outlet />
    </div>
  );
}
