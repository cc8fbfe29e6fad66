import { ActionIcon, Button, TextInput } from '@mantine/core';
import { IconPencil } from '@tabler/icons-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { asProblem, fieldError } from '@/api/problem';
import classes from './InlineEdit.module.css';

type Props = {
  /** The field's name in the API and in its errors. */
  field: string;
  /** Such as "name", for the labels. */
  label: string;
  value: string;
  maxLength: number;
  /** Why the typed text cannot be saved. */
  check?: (typed: string) => string | null;
  /** Saves the typed text; `from`: the value as it was when the editor was opened. */
  save: (typed: string, from: string) => Promise<void>;
  /** Why it cannot be edited. */
  denied: string | undefined;
  /** The value as shown while it is not edited. */
  children: ReactNode;
};

/** A value that is edited where it is shown: Enter saves, Escape cancels. */
export function InlineEdit({ field, label, value, maxLength, check, save, denied, children }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const [from, setFrom] = useState(value);
  const [overwrites, setOverwrites] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const pencil = useRef<HTMLButtonElement>(null);
  const closed = useRef(false);

  useEffect(() => {
    // The form that had the focus is gone.
    if (typed === null && closed.current) pencil.current?.focus();
    closed.current = false;
  }, [typed]);

  const close = (): void => {
    closed.current = true;
    setTyped(null);
    setError(null);
  };
  const submit = async (text: string): Promise<void> => {
    if (text === from) {
      close();
      return;
    }
    const invalid = check?.(text) ?? null;
    setError(invalid);
    if (invalid !== null) return;
    setSaving(true);
    try {
      await save(text, overwrites ? value : from);
      close();
    } catch (problem) {
      const conflicts = asProblem(problem).status === 409;
      setOverwrites(conflicts);
      setError(fieldError(problem, field) + (conflicts ? '. Save again to replace it.' : ''));
    } finally {
      setSaving(false);
    }
  };

  if (typed === null) {
    return (
      <span className={classes.value}>
        {children}
        <ActionIcon
          ref={pencil}
          size={24}
          variant="subtle"
          color="gray"
          className={classes.pencil}
          aria-label={`Edit ${label}`}
          title={denied ?? `Edit ${label}`}
          {...(denied ? { 'data-disabled': true, 'aria-disabled': true } : {})}
          onClick={() => {
            if (denied) return;
            setTyped(value);
            setFrom(value);
            setOverwrites(false);
          }}
        >
          <IconPencil size={14} />
        </ActionIcon>
      </span>
    );
  }
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!saving) void submit(typed.trim());
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        close();
      }}
    >
      <TextInput
        autoFocus
        aria-label={label.charAt(0).toUpperCase() + label.slice(1)}
        value={typed}
        maxLength={maxLength}
        error={error}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          setError(null);
        }}
        className={classes.input}
        style={{ '--characters': Math.max(value.length, 12) }}
      />
      <Button type="submit" loading={saving}>
        Save
      </Button>
      <Button variant="default" onClick={close}>
        Cancel
      </Button>
    </form>
  );
}
