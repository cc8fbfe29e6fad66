import { Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { alertActions, targetsQuery, useAlertMutation, type Target } from '@/api/alerts';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { showToast } from '@/components/toasts';
import classes from './alerts.module.css';

/** Where alerts can be delivered, for admins. */
export function TargetsPanel() {
  const { data: targets, error, refetch } = useQuery(targetsQuery);
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [removed, setRemoved] = useState<Target | null>(null);
  const panel = useRef<HTMLElement>(null);
  const create = useAlertMutation(() => alertActions.createTarget({ name: name.trim(), secret_url: url }));
  const remove = useAlertMutation((id: string) => alertActions.deleteTarget(id));
  const trial = useAlertMutation((id: string) => alertActions.tryTarget(id));
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Targets">
      <h2 className="section-title">Targets</h2>
      <p className="muted">
        Users choose among these for their rules. An address is never shown again: that of a webhook of Slack
        or Discord, <code>https://…</code> for JSON, or <code>mailtos://user:password@host?to=address</code>.
      </p>
      <form
        className={classes.line}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate(undefined, {
            onSuccess: () => {
              setName('');
              setUrl('');
            },
          });
        }}
      >
        <TextInput
          label="Name"
          required
          maxLength={200}
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TextInput
          label="Address"
          required
          maxLength={2000}
          autoComplete="off"
          value={url}
          onChange={({ currentTarget }) => setUrl(currentTarget.value)}
        />
        <LoadingButton type="submit" variant="default" loading={create.isPending}>
          Add target
        </LoadingButton>
      </form>
      {create.isError && <Problem error={create.error} />}
      {trial.isError && <Problem error={trial.error} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!targets && !error && <Loading label="Loading the targets" lines={2} />}
      {targets?.length === 0 && <Empty>There are no targets: alerts are in the inboxes only.</Empty>}
      {targets && targets.length > 0 && (
        <ul className={classes.list}>
          {targets.map((target) => (
            <li key={target.id} className={classes.rule}>
              <div className={classes.body}>
                <span className={classes.words}>{target.name}</span>
                <span className={`muted num ${classes.words}`}>{target.masked_url ?? target.kind}</span>
              </div>
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`Try ${target.name}`}
                onClick={() =>
                  trial.mutate(target.id, {
                    onSuccess: () => showToast('An alert is on its way; the inbox shows whether it arrived.'),
                  })
                }
              >
                Try
              </Button>
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`Delete ${target.name}`}
                onClick={() => setRemoved(target)}
              >
                Delete
              </Button>
            </li>
          ))}
        </ul>
      )}
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title={`Delete target “${removed?.name ?? ''}”`}
        action="Delete"
        danger
        onConfirm={async () => {
          if (removed) await remove.mutateAsync(removed.id);
          panel.current?.focus();
        }}
      >
        Nothing more is delivered to it, including what waits now. Rules that name it stay.
      </ConfirmDialog>
    </section>
  );
}
