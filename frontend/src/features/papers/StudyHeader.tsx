import { Button, Group, Modal, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { MAX_NAME } from '@/lib/runBounds';
import {
  exportUrl,
  studyActions,
  useStudyMutation,
  type StudyChanges,
  type StudyDetail,
} from '@/api/studies';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { useDownload } from '@/components/download';
import { InlineEdit } from '@/components/InlineEdit';
import { MoreMenu } from '@/components/MoreMenu';
import { PermittedButton, useDenied } from '@/components/permission';
import { StateBadge } from '@/components/run/StateBadge';
import { RelativeTime } from '@/components/text';
import { showToast } from '@/components/toasts';
import { formatInteger, parseNumber, plural } from '@/lib/format';
import sweeps from '../sweeps/sweeps.module.css';
import { partsOf, shownState } from './studyState';

type Action = 'stop' | 'retry' | 'delete';
type Dialog = { action: Action | 'extend'; opener: HTMLElement | null };
type Props = { study: StudyDetail; onDeleted: () => void };

const LABELS: Record<Action, string> = { stop: 'Stop', retry: 'Retry', delete: 'Delete' };
const DELETE_LATER = 'The study is running: stop it before you delete it.';

/** A study's name, its state with the reason, and its actions. */
export function StudyHeader({ study, onDeleted }: Props) {
  const denied = useDenied();
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const rename = useStudyMutation(study.id, (body: StudyChanges) => studyActions.change(study.id, body));
  const change = useStudyMutation(study.id, async (id: Action): Promise<void> => {
    await studyActions[id](study.id);
    if (id !== 'delete') return;
    showToast(`Deleted ${study.name}.`);
    onDeleted();
  });
  const close = (): void => {
    setDialog(null);
    dialog?.opener?.focus();
  };
  const download = useDownload();
  const { failed, active } = partsOf(study.runs);
  const isRunning = study.state === 'running';
  const texts: Record<Action, string> = {
    stop: `No further runs will be started. ${active > 0 ? `${plural(active, 'queued or running run')} of the study will be stopped, except those that another running study has; those that train keep a checkpoint. ` : ''}Retry continues the study.`,
    retry: `Starts ${plural(failed, 'failed, stopped, deleted or changed run')} again and continues the study.`,
    delete: `Deletes the study and its figures. Its ${plural(study.n_runs, 'run')} will be kept.`,
  };
  const button = (action: Action) => (
    <PermittedButton
      variant="default"
      denied={denied}
      onClick={({ currentTarget }) => setDialog({ action, opener: currentTarget })}
    >
      {LABELS[action]}
    </PermittedButton>
  );
  return (
    <header className={sweeps.header}>
      <div className="row wrap">
        <InlineEdit
          field="name"
          label="name"
          value={study.name}
          maxLength={MAX_NAME}
          check={(typed) => (typed === '' ? 'Enter a name.' : null)}
          save={async (name, from) => {
            await rename.mutateAsync({ name, expected: { name: from } });
          }}
          denied={denied}
        >
          <h1 className="page-title">{study.name}</h1>
        </InlineEdit>
        <StateBadge {...shownState(study)} reason={`Last change: ${study.state_reason}.`} />
        <span className="grow" />
        <div className={sweeps.actions}>
          {isRunning && button('stop')}
          {!isRunning && (failed > 0 || study.state === 'stopped') && button('retry')}
          <PermittedButton
            variant="default"
            denied={denied}
            onClick={({ currentTarget }) => setDialog({ action: 'extend', opener: currentTarget })}
          >
            Extend
          </PermittedButton>
          <Button component="a" variant="default" href={exportUrl(study.id)} onClick={download.onClick}>
            Export
          </Button>
          <MoreMenu
            of={study.name}
            items={[
              {
                label: LABELS.delete,
                unavailable: denied ?? (isRunning ? DELETE_LATER : undefined),
                onClick: (opener) => setDialog({ action: 'delete', opener }),
              },
            ]}
          />
        </div>
      </div>
      <div className="muted">
        {study.paper && `${study.paper}. `}
        {study.ended_at ? (
          <>
            Ended <RelativeTime at={study.ended_at} />: {study.state_reason}.
          </>
        ) : (
          <>
            Started <RelativeTime at={study.created_at} />.
          </>
        )}
      </div>
      {download.problem}
      {dialog?.action === 'extend' && <Extend study={study} onClose={close} />}
      {dialog && dialog.action !== 'extend' && (
        <Confirm
          action={dialog.action}
          name={study.name}
          text={texts[dialog.action]}
          onClose={close}
          onConfirm={change.mutateAsync}
        />
      )}
    </header>
  );
}

type ConfirmProps = {
  action: Action;
  name: string;
  text: string;
  onClose: () => void;
  onConfirm: (action: Action) => Promise<unknown>;
};

function Confirm({ action, name, text, onClose, onConfirm }: ConfirmProps) {
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={`${LABELS[action]}: ${name}`}
      action={LABELS[action]}
      danger={action === 'delete'}
      onConfirm={() => onConfirm(action)}
    >
      {text}
    </ConfirmDialog>
  );
}

/** Adds seeds, or random settings, to every arm on every environment. */
function Extend({ study, onClose }: { study: StudyDetail; onClose: () => void }) {
  const { draws, arms, environments } = study.spec;
  const noun = Object.keys(draws.space ?? {}).length > 0 ? 'random settings' : 'seeds';
  const [typed, setTyped] = useState('5');
  const extend = useStudyMutation(study.id, (n: number) => studyActions.extend(study.id, { draws: n }));
  const added = parseNumber(typed);
  const isValid = Number.isInteger(added) && added > 0 && added <= 10_000;
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (isValid) extend.mutate(draws.n + added, { onSuccess: onClose });
  };
  return (
    <Modal opened onClose={onClose} title={`Extend: ${study.name}`} size="md">
      <form onSubmit={submit} noValidate style={{ display: 'grid', gap: 16 }}>
        <TextInput
          label={`Further ${noun}`}
          description={`Now ${formatInteger(draws.n)} of each arm on each environment.`}
          inputMode="numeric"
          autoComplete="off"
          classNames={{ input: 'num' }}
          value={typed}
          error={isValid ? null : 'Enter a whole number from 1 to 10,000.'}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          data-autofocus
        />
        {extend.isError && <Problem error={extend.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <LoadingButton type="submit" loading={extend.isPending} unavailable={!isValid}>
            {isValid ? `Add ${plural(added * arms.length * environments.length, 'run')}` : 'Add runs'}
          </LoadingButton>
        </Group>
      </form>
    </Modal>
  );
}
