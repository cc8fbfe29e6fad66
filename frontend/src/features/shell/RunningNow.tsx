import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useRouterState } from '@tanstack/react-router';
import { useNames } from '@/api/names';
import { type Run, runsQuery, type RunsQuery } from '@/api/runs';
import { useSilence } from '@/components/run/silence';
import { useFavicon } from './favicon';
import classes from './shell.module.css';

const MAX_SHOWN = 3;
const NONE: readonly Run[] = [];
const QUERY: RunsQuery = { state: ['starting', 'running', 'stopping'], limit: MAX_SHOWN };

/** Links to the runs that train now. */
export function RunningNow() {
  const { data } = useInfiniteQuery(runsQuery(QUERY));
  const page = data?.pages[0];
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // The icon shows the progress of the page's run if it trains, else of the first run.
  const items = page?.items ?? NONE;
  const names = useNames(items);
  useFavicon((items.find(({ id }) => path.startsWith(`/runs/${id}`)) ?? items[0])?.progress ?? null);
  if (!page) return <div className={classes.running} />;
  return (
    <div className={classes.running} aria-label="Running now">
      {page.total === 0 && <span className="muted">nothing running</span>}
      {page.total > 0 && (
        <Link to="/" search={{ state: 'active' }} className="nowrap">
          {page.total} running
        </Link>
      )}
      {names.shared && <span className="muted nowrap wide">{names.shared}</span>}
      {page.items.map((run) => (
        <Link
          key={run.id}
          to="/runs/$runId"
          params={{ runId: run.id }}
          className={classes.runningItem}
          title={names.label(run)}
        >
          <svg width="10" height="10" viewBox="0 0 12 12" aria-hidden="true" fill="var(--running)">
            <path d="M3 1.8v8.4L10.2 6z" />
          </svg>
          {names.of(run)}
          <Progress run={run} />
        </Link>
      ))}
    </div>
  );
}

function Progress({ run }: { run: Run }) {
  const isSilent = useSilence(run) !== null;
  const reached = run.progress === null ? run.state : `${Math.floor(run.progress * 100)}%`;
  return <span className="num muted">{isSilent ? 'silent' : reached}</span>;
}
