import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { asProblem } from '@/api/problem';
import { previewRetention, useSetRetention, type Policy } from '@/api/storage';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { PermittedButton } from '@/components/permission';
import {
  AUDIT,
  CHECKPOINTS,
  EPISODES,
  EVENT_LOGS_AFTER,
  LOG_LINES,
  parseDraft,
  toDraft,
  type Draft,
  type NumberField,
} from './policy';
import { PreviewTable, removesAnything } from './PreviewTable';
import classes from './storage.module.css';

const EVENT_LOGS = [
  { value: 'keep', label: 'Keep' },
  { value: 'compress', label: 'Compress' },
  { value: 'remove', label: 'Remove' },
];

/** The inputs of a row align, however long their hints are. */
const ORDER = ['label', 'input', 'error', 'description'] as ('label' | 'input' | 'error' | 'description')[];

type Props = {
  /** The saved settings. */
  policy: Policy;
  /** The group whose settings they are; null: the installation's. */
  group: string | null;
  /** A field for the group, with what is wrong with its value; it reports each change. */
  groupField?: (error: string | undefined, onChange: () => void) => ReactNode;
  groupError?: string | undefined;
  /** Why the user may not change them. */
  denied: string | undefined;
  onSaved?: () => void;
  onCancel?: () => void;
};

/** Retention settings, which are saved after a preview of what they remove. */
export function PolicyForm({ policy, group, groupField, groupError, denied, onSaved, onCancel }: Props) {
  // Over the saved settings, which may be refetched meanwhile.
  const [changes, setChanges] = useState<Partial<Draft>>({});
  const [submitted, setSubmitted] = useState(false);
  const [confirming, setConfirming] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const draft = { ...toDraft(policy), ...changes };
  const parsed = parseDraft(draft);
  const preview = useMutation({
    mutationFn: (wanted: Policy) => previewRetention(group, wanted),
  });
  const save = useSetRetention(group);

  const focusInvalid = () => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  // Once the errors of the service are shown.
  useEffect(() => {
    if (preview.error !== null) focusInvalid();
  }, [preview.error]);
  const discardPreview = () => {
    preview.reset();
    save.reset();
  };
  const change = (name: keyof Policy, typed: string) => {
    setChanges({ ...changes, [name]: typed });
    discardPreview();
  };

  const rejected = new Map(
    asProblem(preview.error).fields.map(({ field, message }) => [field.replace(/^policy\./, ''), message]),
  );
  const errors = new Map([...rejected, ...parsed.errors]);
  const atFields = [...rejected.keys()].some((field) => field === 'group' || field in draft);
  const input = ({ name, title, unit, hint }: NumberField) => (
    <TextInput
      key={name}
      name={name}
      label={title}
      description={hint}
      inputMode="numeric"
      autoComplete="off"
      placeholder={unit === 'days' ? 'never' : 'not set'}
      inputWrapperOrder={ORDER}
      classNames={{ input: 'num' }}
      rightSection={<span className={classes.unit}>{unit}</span>}
      rightSectionWidth={unit.length * 6.5 + 16}
      disabled={denied !== undefined}
      value={draft[name]}
      error={errors.get(name)}
      onChange={({ currentTarget }) => change(name, currentTarget.value)}
    />
  );
  return (
    <form
      ref={form}
      noValidate
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        setSubmitted(true);
        if (denied !== undefined || preview.isPending) return;
        if (parsed.errors.size > 0 || groupError !== undefined) requestAnimationFrame(focusInvalid);
        // Not an option of the mutation: that is called for a discarded preview, too.
        else preview.mutate(parsed.policy, { onSuccess: () => setConfirming(true) });
      }}
    >
      {groupField?.(rejected.get('group') ?? (submitted ? groupError : undefined), discardPreview)}
      <Fields
        title="Checkpoints kept per run"
        hint="A checkpoint is kept if any of these rules keeps it; without a rule, all are kept."
      >
        {CHECKPOINTS.map(input)}
      </Fields>
      <Fields
        title="Episodes and videos kept per run"
        hint="An episode’s replay is kept if either number keeps it; if none is set, all are kept."
      >
        {EPISODES.map(input)}
      </Fields>
      <Fields
        title={group === null ? 'Logs and audit trail' : 'Logs'}
        hint="An event log is compressed or removed only once the database contains all of it."
      >
        <NativeSelect
          name="event_logs"
          label="Event logs"
          description="Of attempts that have ended."
          inputWrapperOrder={ORDER}
          data={EVENT_LOGS}
          disabled={denied !== undefined}
          value={draft.event_logs}
          error={errors.get('event_logs')}
          onChange={({ currentTarget }) => change('event_logs', currentTarget.value)}
        />
        {[EVENT_LOGS_AFTER, LOG_LINES, ...(group === null ? [AUDIT] : [])].map(input)}
      </Fields>
      {preview.isError && !atFields && <Problem error={preview.error} />}
      <div className="row wrap">
        {denied === undefined ? (
          <LoadingButton type="submit" loading={preview.isPending}>
            Preview and save…
          </LoadingButton>
        ) : (
          <PermittedButton denied={denied}>Preview and save…</PermittedButton>
        )}
        {onCancel && (
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
        )}
        <span role="status" className="muted">
          {denied ?? (save.isSuccess ? 'Saved. Clean-up applies the policy within minutes.' : '')}
        </span>
      </div>
      <ConfirmDialog
        opened={confirming && preview.data !== undefined}
        onClose={() => setConfirming(false)}
        title={
          group === null ? 'Save the installation’s retention policy' : 'Save the group’s retention policy'
        }
        action="Save"
        danger={preview.data !== undefined && removesAnything(preview.data)}
        onConfirm={async () => {
          if (preview.variables === undefined) return;
          await save.mutateAsync(preview.variables);
          setChanges({});
          // The dialog's button, which has the focus, goes.
          form.current?.querySelector<HTMLElement>('[type=submit]')?.focus();
          onSaved?.();
        }}
      >
        {preview.data && <PreviewTable preview={preview.data} eventLogs={preview.variables.event_logs} />}
      </ConfirmDialog>
    </form>
  );
}

function Fields({ title, hint, children }: { title: string; hint: string; children: ReactNode }) {
  return (
    <fieldset className={classes.fields}>
      <legend>{title}</legend>
      <p className={`muted ${classes.note}`}>{hint}</p>
      {children}
    </fieldset>
  );
}
