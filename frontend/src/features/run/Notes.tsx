import { Button, SegmentedControl, Textarea } from '@mantine/core';
import { useSessionStorage } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { fieldError } from '@/api/problem';
import { MAX_NOTES } from '@/lib/runBounds';
import { Markdown } from '@/components/Markdown';
import { PermittedButton } from '@/components/permission';
import classes from './edit.module.css';

/** Longer notes are folded. */
const FOLDED_LINES = 2;
const FOLDED_CHARACTERS = 200;

const isLong = (notes: string): boolean =>
  notes.length > FOLDED_CHARACTERS || notes.split('\n').length > FOLDED_LINES;

type Props = {
  runId: string;
  notes: string;
  /** Saves the notes; `from`: as they were when the editor was opened. */
  save: (notes: string, from: string) => Promise<void>;
  denied: string | undefined;
};

/** A run's notes in Markdown, edited in place. Text that is not saved stays with the run until the tab is closed,
 * and never replaces what somebody else has written meanwhile unless the user confirms it. */
export function Notes({ runId, notes, save, denied }: Props) {
  const [typed, setTyped, forget] = useSessionStorage<string | null>({
    key: `callboard-notes-${runId}`,
    defaultValue: null,
    getInitialValueInEffect: false,
  });
  const [from, setFrom, forgetFrom] = useSessionStorage<string | null>({
    key: `callboard-notes-from-${runId}`,
    defaultValue: null,
    getInitialValueInEffect: false,
  });
  const [restored, setRestored] = useState(typed !== null);
  const [editing, setEditing] = useState(restored);
  const [unfolded, setUnfolded] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const closed = useRef(false);

  useEffect(() => {
    if (!editing && closed.current) edit.current?.focus();
    closed.current = false;
  }, [editing]);

  if (editing) {
    const close = (): void => {
      closed.current = true;
      forget();
      forgetFrom();
      setRestored(false);
      setEditing(false);
    };
    return (
      <Editor
        notes={notes}
        from={from ?? notes}
        typed={typed ?? notes}
        restored={restored}
        onType={setTyped}
        save={save}
        onClose={close}
      />
    );
  }
  const start = (label: string) => (
    <PermittedButton
      ref={edit}
      denied={denied}
      size="compact-xs"
      variant="subtle"
      color="gray"
      onClick={() => {
        setFrom(notes);
        setEditing(true);
      }}
    >
      {label}
    </PermittedButton>
  );
  if (notes.trim() === '') return start('Add notes');
  const long = isLong(notes);
  return (
    <section aria-label="Notes" className={`${classes.notes} ${classes.shown}`}>
      <div className={`grow ${long && !unfolded ? classes.folded : ''}`}>
        <Markdown text={notes} />
      </div>
      <span className="row">
        {start('Edit notes')}
        {long && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            aria-expanded={unfolded}
            onClick={() => setUnfolded(!unfolded)}
          >
            {unfolded ? 'Show less' : 'Show all'}
          </Button>
        )}
      </span>
    </section>
  );
}

type EditorProps = {
  notes: string;
  /** The notes as they were when the editor was opened. */
  from: string;
  typed: string;
  /** Whether the text was typed before this page was opened. */
  restored: boolean;
  onType: (typed: string) => void;
  save: (notes: string, from: string) => Promise<void>;
  onClose: () => void;
};

function Editor({ notes, from, typed, restored, onType, save, onClose }: EditorProps) {
  const [view, setView] = useState<'write' | 'preview'>('write');
  const [error, setError] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const submit = async (before: string): Promise<void> => {
    setSaving(true);
    try {
      if (typed !== before) await save(typed, before);
      onClose();
    } catch (problem) {
      setError(fieldError(problem, 'notes'));
      setView('write');
    } finally {
      setSaving(false);
    }
  };
  return (
    <form
      className={classes.notes}
      aria-label="Notes"
      onSubmit={(event) => {
        event.preventDefault();
        if (!saving) void submit(from);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit(from);
      }}
    >
      <SegmentedControl
        size="xs"
        aria-label="Notes as"
        style={{ justifySelf: 'start' }}
        value={view}
        data={[
          { value: 'write', label: 'Write' },
          { value: 'preview', label: 'Preview' },
        ]}
        onChange={(next) => setView(next)}
      />
      {view === 'write' ? (
        <Textarea
          autoFocus={!restored}
          rows={8}
          resize="vertical"
          aria-label="Notes"
          description="Markdown: **bold**, *italic*, `code`, lists, headings, links. Ctrl+Enter saves."
          maxLength={MAX_NOTES}
          value={typed}
          error={error}
          onChange={({ currentTarget }) => onType(currentTarget.value)}
        />
      ) : (
        <div className={classes.preview}>
          {typed.trim() ? <Markdown text={typed} /> : <span className="muted">Nothing to preview.</span>}
        </div>
      )}
      {notes !== from && !saving && (
        <div role="alert" className={classes.meanwhile}>
          <strong>Somebody else has changed these notes meanwhile.</strong> Saved now:
          <pre>{notes || 'Nothing'}</pre>
          <Button size="compact-xs" variant="default" onClick={() => void submit(notes)}>
            Replace with mine
          </Button>
        </div>
      )}
      <span className="row">
        <Button type="submit" loading={saving}>
          Save notes
        </Button>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        {restored && <span className="muted">Restored; not saved yet.</span>}
      </span>
    </form>
  );
}
