import { Outlet } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ConnectionState } from './ConnectionState';
import classes from './Frame.module.css';
import { NavBar } from './NavBar';
import { RunningNow } from './RunningNow';
import { SearchBox } from './SearchBox';

/** What stands around every page: that of the address, or what it is given. */
export function Frame({ children }: { children?: ReactNode }) {
  return (
    <div className={classes.frame}>
      <a href="#main" className={classes.skip}>
        Skip to the page
      </a>
      <NavBar />
      <header className={classes.top}>
        <SearchBox />
        <RunningNow />
        <ConnectionState />
      </header>
      <main id="main" className={classes.main} tabIndex={-1}>
        {children ?? <Outlet />}
      </main>
    </div>
  );
}
