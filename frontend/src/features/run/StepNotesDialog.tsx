import { Button, Modal, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { asProblem } from '@/api/problem';
import {
  addStepNote,
  changeStepNote,
  deleteStepNote,
  stepNotesQuery,
  type StepNote,
} from '@/api/runResources';
import { useRunMutation, type Run } from '@/api/runs';
import { Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { formatInteger, parseNumber } from '@/lib/format';
import { stepsOf } from '@/lib/run';
import classes from './notes.module.css';

type Props = {
  run: Run;
  /** What a new note is about; without it the latest step. */
  step: number | undefined;
  onClose: () => void;
};

type Draft = { id: string | null; step: string; text: string };

/** The notes at steps of a run, which its learning curve marks, and a form for another one. */
export default function StepNotesDialog({ run, step, onClose }: Props) {
  const { data: notes, error } = useQuery(stepNotesQuery(run.id));
  const denied = useDenied();
  const fresh: Draft = {
    id: null,
    step: formatInteger(Math.min(step ?? run.agent_steps, run.agent_steps)),
    text: '',
  };
  const [draft, setDraft] = useState(fresh);
  const remove = useRunMutation((note: string) => deleteStepNote(run.id, note));
  return (
    <Modal opened onClose={onClose} title="Notes at steps" size="lg">
      <div className={classes.dialog}>
        {denied === undefined && (
          <NoteForm
            key={draft.id}
            run={run}
            draft={draft}
            onDraft={setDraft}
            onSaved={() => setDraft(fresh)}
          />
        )}
        {error && <Problem error={error} />}
        {remove.error && <Problem error={remove.error} />}
        {!notes && !error && <Loading label="Loading the notes" lines={2} />}
        {notes?.length === 0 && (
          <p className="muted">There is none. A star below the learning curve will mark it.</p>
        )}
        {notes && notes.length > 0 && (
          <ol className={classes.list} aria-label="Notes">
            {notes.map((note) => (
              <li key={note.id} data-edited={note.id === draft.id || undefined}>
                <span className="num muted">{formatInteger(note.agent_steps)}</span>
                <span className={classes.text}>{note.text}</span>
                {denied === undefined && (
                  <span className="row">
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="gray"
                      aria-label={`Edit ${labelOf(note)}`}
                      onClick={() =>
                        setDraft({ id: note.id, step: formatInteger(note.agent_steps), text: note.text })
                      }
                    >
                      Edit
                    </Button>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="gray"
                      aria-label={`Delete ${labelOf(note)}`}
                      disabled={remove.isPending}
                      onClick={() => {
                        if (note.id === draft.id) setDraft(fresh);
                        remove.mutate(note.id);
                      }}
                    >
                      Delete
                    </Button>
                  </span>
                )}
              </li>
            ))}
          </ol>
        )}
      </div>
    </Modal>
  );
}

const labelOf = ({ agent_steps }: StepNote): string => `the note at ${formatInteger(agent_steps)}`;

type FormProps = { run: Run; draft: Draft; onDraft: (draft: Draft) => void; onSaved: () => void };

/** A new note, or one that is edited. */
function NoteForm({ run, draft, onDraft, onSaved }: FormProps) {
  const { id, step, text } = draft;
  const agent_steps = parseNumber(step);
  const isStep = Number.isInteger(agent_steps) && agent_steps >= 0 && agent_steps <= run.agent_steps;
  const save = useRunMutation(() =>
    id === null
      ? addStepNote(run.id, { agent_steps, text })
      : changeStepNote(run.id, id, { agent_steps, text }),
  );
  const problems = new Map(asProblem(save.error).fields.map(({ field, message }) => [field, message]));
  const edit = (to: Partial<Draft>): void => {
    save.reset();
    onDraft({ ...draft, ...to });
  };
  return (
    <form
      className={classes.form}
      aria-label={id === null ? 'New note' : 'Edited note'}
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(undefined, { onSuccess: onSaved });
      }}
    >
      <TextInput
        size="xs"
        label={stepsOf(run) === 'iterations' ? 'Iteration' : 'Agent step'}
        inputMode="numeric"
        classNames={{ input: 'num' }}
        value={step}
        error={
          isStep ? problems.get('agent_steps') : `A whole number from 0 to ${formatInteger(run.agent_steps)}`
        }
        errorProps={{ role: 'alert' }}
        onChange={({ currentTarget }) => edit({ step: currentTarget.value })}
      />
      <Textarea
        size="xs"
        label="Note"
        data-autofocus
        rows={2}
        resize="vertical"
        placeholder="What happened here?"
        value={text}
        error={problems.get('text')}
        errorProps={{ role: 'alert' }}
        onChange={({ currentTarget }) => edit({ text: currentTarget.value })}
      />
      <span className={`row ${classes.buttons}`}>
        {id !== null && (
          <Button variant="default" onClick={onSaved}>
            Cancel
          </Button>
        )}
        <Button type="submit" loading={save.isPending} disabled={!isStep || text.trim() === ''}>
          {id === null ? 'Add note' : 'Save note'}
        </Button>
      </span>
      {save.error && problems.size === 0 && <Problem error={save.error} />}
    </form>
  );
}
