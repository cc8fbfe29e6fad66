import { Menu, Tooltip } from '@mantine/core';
import { IconArrowForward, IconDots, IconHelpCircle, IconPlus } from '@tabler/icons-react';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useConnection } from '@/api/liveUpdates';
import { MenuLink } from '@/components/controls';
import { useDenied } from '@/components/permission';
import { usePlacedPages } from '@/components/placedPages';
import { served } from '@/lib/base';
import { formatDuration, formatExact } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import { GLOBAL } from '@/lib/shortcuts';
import { AlertBell } from './AlertBell';
import { DiskBanner } from './DiskBanner';
import { KeyedDialogs, openPalette, PaletteItem } from './KeyedDialogs';
import { ProjectItems, ProjectMenu } from './ProjectMenu';
import { RailFoot, SignOutItem, ThemeItem } from './RailFoot';
import { RunningNow } from './RunningNow';
import { SearchBox } from './SearchBox';
import classes from './shell.module.css';
import { useFocusKeeper } from './useFocusKeeper';

/** The layout around every page: navigation, search, running runs and the connection's state. */
export function AppShell({ children }: { children?: ReactNode }) {
  useFocusKeeper();
  return (
    <div className={classes.shell}>
      <a href="#main" className={classes.skip}>
        Skip to main content
      </a>
      <NavBar />
      <header className={classes.top}>
        <SearchBox />
        <RunningNow />
        <ConnectionState />
        <NewRunLink />
        <AlertBell />
      </header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <DiskBanner />
        {children ?? <Outlet />}
      </main>
      <KeyedDialogs />
    </div>
  );
}

/** The documentation, which the service has beside the pages. */
const HELP = served('/help/');

type NavPage = ReturnType<typeof usePlacedPages<'nav'>>[number];

/** Whether a page of the bar is the current one. */
const isCurrent = (path: string, { to, covers = [] }: NavPage): boolean =>
  path === to || [...(to === '/' ? [] : [to]), ...covers].some((beginning) => path.startsWith(beginning));

/** The navigation: a bar on the left, on a phone at the bottom, with its less used pages under More. */
function NavBar() {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const pages = usePlacedPages('nav');
  return (
    <nav aria-label="Pages" className={classes.nav}>
      <Link to="/" className={classes.brand} aria-label="Callboard: all runs">
        <img src={served('/favicon.svg')} alt="" width="28" height="28" />
        Callboard
      </Link>
      <ProjectMenu />
      {pages.map((page) => (
        <Link
          key={page.to}
          to={page.to}
          className={classes.navItem}
          data-under-more={page.underMore}
          {...(isCurrent(path, page) ? { 'data-active': true, 'aria-current': 'page' as const } : {})}
        >
          <page.icon size={20} stroke={1.75} aria-hidden="true" />
          {page.label}
        </Link>
      ))}
      <More path={path} pages={pages.filter(({ underMore }) => underMore)} />
      <span className="grow" />
      <button
        type="button"
        className={`${classes.navItem} ${classes.help}`}
        title={`${GLOBAL.palette.action} (${GLOBAL.palette.keys.join('-')})`}
        onClick={openPalette}
      >
        <IconArrowForward size={20} stroke={1.75} aria-hidden="true" />
        Go to
      </button>
      <Menu position="right-end" withinPortal>
        <Menu.Target>
          <button type="button" className={`${classes.navItem} ${classes.help}`}>
            <IconHelpCircle size={20} stroke={1.75} aria-hidden="true" />
            Help
          </button>
        </Menu.Target>
        <Menu.Dropdown>
          <HelpItems />
        </Menu.Dropdown>
      </Menu>
      <RailFoot />
    </nav>
  );
}

function HelpItems() {
  return (
    <>
      <Menu.Item component="a" href={HELP}>
        Documentation
      </Menu.Item>
      <MenuLink to="/examples">Examples to start</MenuLink>
      <MenuLink to="/settings/shortcuts">Keyboard shortcuts</MenuLink>
    </>
  );
}

/** The menu of the pages for which a phone's bar has no room. */
function More({ path, pages }: { path: string; pages: NavPage[] }) {
  return (
    <Menu position="top-end" withinPortal>
      <Menu.Target>
        <button
          type="button"
          className={`${classes.navItem} ${classes.more}`}
          data-active={pages.some((page) => isCurrent(path, page)) || undefined}
        >
          <IconDots size={20} stroke={1.75} aria-hidden="true" />
          More
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {pages.map(({ to, label }) => (
          <MenuLink key={to} to={to}>
            {label}
          </MenuLink>
        ))}
        <PaletteItem />
        <HelpItems />
        <ProjectItems />
        <ThemeItem />
        <SignOutItem />
      </Menu.Dropdown>
    </Menu>
  );
}

/** Shorter interruptions are shown as reconnecting. */
const STALE_MS = 10_000;

/** Whether the page is up to date; shown only when it is not: reconnecting, offline, or stale since when. */
export function ConnectionState() {
  const { status, lastEventAt } = useConnection();
  if (status === 'live')
    return (
      <span role="status" className="visually-hidden">
        live
      </span>
    );
  return <Interrupted status={status} lastEventAt={lastEventAt} />;
}

function Interrupted({ status, lastEventAt }: ReturnType<typeof useConnection>) {
  const now = useNow();
  const lost = status === 'reconnecting' || status === 'offline';
  const stale = lost && lastEventAt !== null && now - lastEventAt > STALE_MS;
  const age = stale ? `stale for ${formatDuration((now - lastEventAt) / 1000)}` : '';
  const text = status === 'offline' ? `offline${age && `, ${age}`}` : age || status;
  const hint = `${status === 'offline' ? 'This device has no network' : 'The service cannot be reached'}; retrying every few seconds.${lastEventAt ? ` Last update: ${formatExact(lastEventAt)}.` : ''}`;
  return (
    <Tooltip label={hint}>
      <span role="status" className={classes.connection} data-status={stale ? 'stale' : status}>
        <span className={classes.dot} aria-hidden="true" />
        {text}
      </span>
    </Tooltip>
  );
}

/** The link to the form, on every page; for a role that may not start runs, it has the reason and no target. */
export function NewRunLink() {
  const denied = useDenied();
  const content = (
    <>
      <IconPlus size={16} stroke={1.75} aria-hidden="true" />
      <span>New run</span>
    </>
  );
  if (denied === undefined)
    return (
      <Link to="/new" className={classes.newRun}>
        {content}
      </Link>
    );
  return (
    <span role="link" tabIndex={0} className={classes.newRun} title={denied} aria-disabled data-denied>
      {content}
    </span>
  );
}
