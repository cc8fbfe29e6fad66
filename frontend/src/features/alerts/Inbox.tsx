import { Button, Checkbox } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { alertActions, inboxQuery, useAlertMutation } from '@/api/alerts';
import { LoadingButton, ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { turn, useNotifications } from '@/lib/notifications';
import { AlertRow } from './AlertRow';
import classes from './alerts.module.css';

type Props = { unread: boolean; onUnread: (unread: boolean) => void };

/** The user's alerts, latest first. */
export function Inbox({ unread, onUnread }: Props) {
  const pages = useInfiniteQuery(inboxQuery(unread));
  const { data, error, refetch } = pages;
  const readAll = useAlertMutation((id: string) => alertActions.readUntil(id));
  const alerts = data?.pages.flatMap(({ items }) => items);
  const first = alerts?.[0];
  const nUnread = data?.pages[0]?.unread ?? 0;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Inbox">
      <div className={classes.head}>
        <h2 className="section-title">Inbox</h2>
        <span className="muted num">{nUnread} unread</span>
        <span className="grow" />
        <Checkbox
          label="Only unread"
          checked={unread}
          onChange={({ currentTarget }) => onUnread(currentTarget.checked)}
        />
        {first && nUnread > 0 && (
          <LoadingButton
            variant="default"
            loading={readAll.isPending}
            onClick={() => readAll.mutate(first.id)}
          >
            Mark all as read
          </LoadingButton>
        )}
      </div>
      {readAll.isError && <Problem error={readAll.error} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!alerts && !error && <Loading label="Loading the alerts" lines={6} />}
      {alerts?.length === 0 && (
        <Empty>
          {unread
            ? 'You have read all alerts.'
            : 'No alerts yet. A rule raises one when, say, a run fails; the bell on a run’s page creates such a rule.'}
        </Empty>
      )}
      {alerts && alerts.length > 0 && (
        <ul className={classes.list}>
          {alerts.map((alert) => (
            <AlertRow key={alert.id} alert={alert} />
          ))}
        </ul>
      )}
      <ShowMore query={pages} />
      <BrowserNotifications />
    </section>
  );
}

const HINTS = {
  unsupported: 'This browser shows notifications only over https or on this machine.',
  blocked: 'This browser blocks notifications of this address: allow them in its settings.',
  off: 'New alerts can also be notifications of this browser, while a page of Callboard is open.',
  on: 'New alerts are notifications of this browser, while a page of Callboard is open.',
};

function BrowserNotifications() {
  const state = useNotifications();
  return (
    <div className={classes.notifications}>
      <span className="muted">{HINTS[state]}</span>
      {(state === 'on' || state === 'off') && (
        <Button variant="default" onClick={() => void turn(state === 'on' ? 'off' : 'on')}>
          {state === 'on' ? 'Turn off' : 'Turn on'}
        </Button>
      )}
    </div>
  );
}
