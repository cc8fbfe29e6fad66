import { Button } from '@mantine/core';
import { IconAlertTriangle, IconCircleX, IconInfoCircle } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { alertActions, useAlertMutation, type Alert } from '@/api/alerts';
import { formatZoom } from '@/components/chart/curveView';
import { Loading, Problem } from '@/components/feedback';
import { RelativeTime } from '@/components/text';
import { formatCount } from '@/lib/format';
import classes from './alerts.module.css';

const AlertChart = lazy(() => import('./AlertChart'));

const ICONS = { info: IconInfoCircle, warning: IconAlertTriangle, error: IconCircleX };
const LEVELS = { info: 'Information', warning: 'Warning', error: 'Error' };

/** The range of agent steps around a step, as a run's address has it. */
export function around(steps: number | null): { zoom?: string } {
  if (!steps) return {};
  const width = Math.max(1, steps / 5);
  return { zoom: formatZoom([Math.max(0, steps - width), steps + width]) };
}

const hasRun = (alert: Alert): alert is Alert & { run_id: string } => typeof alert.run_id === 'string';

/** An alert, with the way to its run at that step, and its chart on request. */
export function AlertRow({ alert }: { alert: Alert }) {
  const [charted, setCharted] = useState(false);
  const setRead = useAlertMutation((read: boolean) => alertActions.setRead(alert.id, read));
  const unread = alert.read_at === null;
  const Icon = ICONS[alert.level];
  const failed = alert.deliveries.filter(({ state }) => state === 'failed').length;
  return (
    <li className={classes.alert} data-unread={unread || undefined} data-level={alert.level}>
      <Icon size={18} stroke={1.75} aria-label={LEVELS[alert.level]} role="img" />
      <div className={classes.body}>
        <div className={classes.head}>
          {hasRun(alert) ? (
            <Link
              to="/runs/$runId"
              params={{ runId: alert.run_id }}
              search={around(alert.agent_steps)}
              className={classes.title}
              onClick={() => unread && setRead.mutate(true)}
            >
              {alert.title}
            </Link>
          ) : (
            <span className={classes.title}>{alert.title}</span>
          )}
          {unread && <span className={classes.mark}>unread</span>}
          <span className="grow" />
          <RelativeTime at={alert.created_at} />
        </div>
        {alert.text !== '' && <p className={classes.text}>{alert.text}</p>}
        <div className={`muted ${classes.foot}`}>
          {alert.agent_steps !== null && <span className="num">step {formatCount(alert.agent_steps)}</span>}
          {alert.attempt > 1 && <span className="num">attempt {alert.attempt}</span>}
          {alert.deliveries.map(({ target_id, target, state, tries, error }) => (
            <span key={target_id} title={error ?? undefined} data-failed={state === 'failed' || undefined}>
              {target}: {state}
              {state === 'pending' && tries > 0 && `, ${tries} of 8 tries failed`}
            </span>
          ))}
          {failed > 0 && <span className="visually-hidden">{failed} deliveries failed</span>}
          <span className="grow" />
          {hasRun(alert) && (
            <Button
              size="compact-xs"
              variant="subtle"
              aria-expanded={charted}
              aria-label={`${charted ? 'Hide chart' : 'Chart'}: ${alert.title}`}
              onClick={() => setCharted(!charted)}
            >
              {charted ? 'Hide chart' : 'Chart'}
            </Button>
          )}
          <Button
            size="compact-xs"
            variant="subtle"
            aria-label={`Mark as ${unread ? 'read' : 'unread'}: ${alert.title}`}
            onClick={() => setRead.mutate(unread)}
          >
            {unread ? 'Mark as read' : 'Mark as unread'}
          </Button>
        </div>
        {setRead.isError && <Problem error={setRead.error} />}
        {charted && hasRun(alert) && (
          <Suspense fallback={<Loading label="Loading the chart" lines={8} />}>
            <AlertChart alert={alert} />
          </Suspense>
        )}
      </div>
    </li>
  );
}
