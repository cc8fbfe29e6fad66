import { useState } from 'react';
import { MAX_NAME } from '@/lib/runBounds';
import { sweepActions, useSweepMutation, type SweepChanges, type SweepDetail } from '@/api/sweeps';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { InlineEdit } from '@/components/InlineEdit';
import { MoreMenu } from '@/components/MoreMenu';
import { PermittedButton, useDenied } from '@/components/permission';
import { RelativeTime } from '@/components/text';
import { showToast } from '@/components/toasts';
import { ExtendDialog } from './ExtendDialog';
import { actionsOf, type SweepAction } from './sweepActions';
import classes from './sweeps.module.css';
import { SweepState } from './SweepState';

type Dialog = { action: SweepAction | 'extend'; opener: HTMLElement | null };
type Props = { sweep: SweepDetail; onDeleted: () => void };

/** A sweep's name, its state with the reason, and its actions. */
export function SweepHeader({ sweep, onDeleted }: Props) {
  const denied = useDenied();
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const rename = useSweepMutation(sweep.id, (body: SweepChanges) => sweepActions.change(sweep.id, body));
  const change = useSweepMutation(sweep.id, async (id: SweepAction['id']): Promise<void> => {
    await sweepActions[id](sweep.id);
    if (id !== 'delete') return;
    showToast(`Deleted ${sweep.name}.`);
    onDeleted();
  });
  const close = (): void => {
    setDialog(null);
    dialog?.opener?.focus();
  };
  const actions = actionsOf(sweep);
  const danger = actions.filter((action) => action.danger);
  const button = (action: SweepAction) => (
    <PermittedButton
      key={action.id}
      variant="default"
      denied={denied ?? action.unavailable}
      onClick={({ currentTarget }) => setDialog({ action, opener: currentTarget })}
    >
      {action.label}
    </PermittedButton>
  );
  return (
    <header className={classes.header}>
      <div className="row wrap">
        <InlineEdit
          field="name"
          label="name"
          value={sweep.name}
          maxLength={MAX_NAME}
          check={(typed) => (typed === '' ? 'Enter a name.' : null)}
          save={async (name, from) => {
            await rename.mutateAsync({ name, expected: { name: from } });
          }}
          denied={denied}
        >
          <h1 className="page-title">{sweep.name}</h1>
        </InlineEdit>
        <SweepState sweep={sweep} />
        <span className="muted">
          {sweep.algorithm} on {sweep.environment}
        </span>
        <span className="grow" />
        <div className={classes.actions}>
          {actions.filter((action) => !action.danger).map(button)}
          <PermittedButton
            variant="default"
            denied={denied}
            onClick={({ currentTarget }) => setDialog({ action: 'extend', opener: currentTarget })}
          >
            Extend
          </PermittedButton>
          <MoreMenu
            of={sweep.name}
            items={danger.map((action) => ({
              label: action.label,
              unavailable: denied ?? action.unavailable,
              onClick: (opener) => setDialog({ action, opener }),
            }))}
          />
        </div>
      </div>
      <div className="muted">
        {sweep.ended_at ? (
          <>
            {capitalised(sweep.state_reason)}; ended <RelativeTime at={sweep.ended_at} />.
          </>
        ) : (
          <>
            Started <RelativeTime at={sweep.created_at} />
            {sweep.state_reason !== 'created' && `, ${sweep.state_reason}`}.
          </>
        )}
      </div>
      {dialog?.action === 'extend' && <ExtendDialog sweep={sweep} onClose={close} />}
      {dialog && dialog.action !== 'extend' && (
        <Confirm action={dialog.action} name={sweep.name} onClose={close} onConfirm={change.mutateAsync} />
      )}
    </header>
  );
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

type ConfirmProps = {
  action: SweepAction;
  name: string;
  onClose: () => void;
  onConfirm: (id: SweepAction['id']) => Promise<unknown>;
};

function Confirm({ action, name, onClose, onConfirm }: ConfirmProps) {
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={`${action.label}: ${name}`}
      action={action.label}
      danger={action.danger ?? false}
      onConfirm={() => onConfirm(action.id)}
    >
      {action.description}
    </ConfirmDialog>
  );
}
