import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { accountActions, sessionsQuery, useAccountMutation } from '@/api/account';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { ShowMore } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { RelativeTime } from '@/components/text';
import { served } from '@/lib/base';
import { DASH } from '@/lib/format';
import classes from './account.module.css';
import { browserName, methodName } from './names';

/** The browsers in which the user is signed in, each of which can be signed out. */
export function SessionsPanel() {
  const pages = useInfiniteQuery(sessionsQuery);
  const { data, error, refetch } = pages;
  const [everywhere, setEverywhere] = useState(false);
  const panel = useRef<HTMLElement>(null);
  const end = useAccountMutation((id: string) => accountActions.endSession(id));
  const sessions = data?.pages.flatMap(({ items }) => items);
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Sessions">
      <h2 className="section-title">Active sessions</h2>
      {end.isError && <Problem error={end.error} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!sessions && !error && <Loading label="Loading the sessions" lines={2} />}
      {sessions && (
        <div className="scroll-x" role="region" aria-label="List of sessions" tabIndex={0}>
          <table className="grid">
            <thead>
              <tr>
                <th>Browser</th>
                <th>Address</th>
                <th className="wide">Signed in</th>
                <th>Last used</th>
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {sessions.map((session) => (
                <tr key={session.id}>
                  <td title={session.user_agent ?? undefined}>
                    {browserName(session.user_agent)}
                    {session.current && <span className="muted"> (current)</span>}
                  </td>
                  <td className="num nowrap">{session.address ?? DASH}</td>
                  <td className="wide">
                    <RelativeTime at={session.created_at} />
                    <span className="muted">{methodName(session.method)}</span>
                  </td>
                  <td>
                    <RelativeTime at={session.last_used_at} />
                  </td>
                  <td className="actions">
                    {!session.current && (
                      <Button
                        size="compact-xs"
                        variant="default"
                        aria-label={`Sign out ${browserName(session.user_agent)}`}
                        loading={end.isPending && end.variables === session.id}
                        onClick={() =>
                          end.mutate(session.id, {
                            // Its row is gone, and with it the button that had the focus.
                            onSuccess: () => panel.current?.focus(),
                          })
                        }
                      >
                        Sign out
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div className="row">
        <ShowMore query={pages} />
        <Button variant="default" onClick={() => setEverywhere(true)}>
          Sign out everywhere
        </Button>
      </div>
      <ConfirmDialog
        opened={everywhere}
        onClose={() => setEverywhere(false)}
        title="Sign out everywhere"
        action="Sign out everywhere"
        danger
        onConfirm={async () => {
          await accountActions.endAllSessions();
          // A full page load, so that nothing of the old session remains.
          location.assign(served('/login'));
        }}
      >
        This ends all your sessions, including this one. Tokens keep working until they are revoked.
      </ConfirmDialog>
    </section>
  );
}
