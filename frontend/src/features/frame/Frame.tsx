import { Outlet } from '@tanstack/react-router';
import { ConnectionState } from './ConnectionState';
import classes from './Frame.module.css';
import { NavBar } from './NavBar';
import { RunningNow } from './RunningNow';
import { SearchBox } from './SearchBox';

/** What stands around every page. */
export function Frame() {
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
        <Outlet />
      </main>
    </div>
  );
}
