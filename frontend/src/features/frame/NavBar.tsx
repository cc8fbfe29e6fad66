import { IconPlus } from '@tabler/icons-react';
import { Link, useRouterState } from '@tanstack/react-router';
import classes from './Frame.module.css';
import { PAGES } from './nav';

/** A run's page belongs to the runs. */
const isAt = (path: string, to: string): boolean =>
  to === '/' ? path === '/' || path.startsWith('/runs/') : path.startsWith(to);

/** The slim bar on the left; on a phone it lies at the bottom. */
export function NavBar() {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  return (
    <nav aria-label="Pages" className={classes.nav}>
      <Link to="/" className={classes.brand} aria-label="Callboard, to the runs">
        <img src="/favicon.svg" alt="" width="28" height="28" />
      </Link>
      <Link to="/new" className={classes.navItem} data-primary>
        <IconPlus size={20} stroke={1.75} aria-hidden="true" />
        New run
      </Link>
      {PAGES.map(({ to, label, icon: Icon }) => (
        <Link
          key={to}
          to={to}
          className={classes.navItem}
          {...(isAt(path, to) ? { 'data-active': true, 'aria-current': 'page' as const } : {})}
        >
          <Icon size={20} stroke={1.75} aria-hidden="true" />
          {label}
        </Link>
      ))}
    </nav>
  );
}
