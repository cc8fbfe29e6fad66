import { useCallback, useMemo, useState, type SubmitEvent } from 'react';
import { flushSync } from 'react-dom';
import type { Command } from '@/api/catalogue';
import { newKey } from '@/api/client';
import type { FieldProblem } from '@/api/problem';
import { createRuns, useRunMutation, type Run } from '@/api/runs';
import { createSweep } from '@/api/sweeps';
import { ConfigInput } from '@/components/config/ConfigInput';
import { useDenied } from '@/components/permission';
import { plural } from '@/lib/format';
import { readFields, type Raw } from '@/lib/schema';
import { Choices } from './Choices';
import { blankDraft, rawOf, type Draft } from './draft';
import classes from './launch.module.css';
import { LaunchBar } from './LaunchBar';
import { fieldErrorsOf, focusFirstInvalid, withoutPath } from './LaunchForm';
import {
  gridOf,
  groupOf,
  isSweep,
  sweepName,
  sweepProblems,
  toCommandRequest,
  toSweepRequest,
} from './requests';
import { RunFields } from './RunFields';
import { SweepFields } from './SweepFields';
import { validate } from './validation';

type Props = {
  commands: readonly Command[];
  command: Command;
  onCommand: (name: string) => void;
  onStarted: (runs: Run[]) => void;
  onSweepStarted: (id: string) => void;
};

/** The form for runs of a host's command. */
export default function CommandForm({ commands, command, onCommand, onStarted, onSweepStarted }: Props) {
  const [draft, setDraft] = useState<Draft>(() => blankDraft(command.environment, command.name));
  const [serverErrors, setServerErrors] = useState<readonly FieldProblem[]>([]);
  const fields = useMemo(() => readFields(command.config_schema, 'config'), [command]);
  const draftErrors = validate(fields, draft);
  const errors = new Map([...serverErrors, ...draftErrors].map(({ field, message }) => [field, message]));
  const sweep = command.has_seed && isSweep(fields, draft);
  const refusal = useDenied('operator');
  const key = useMemo(() => ({ draft, text: newKey() }), [draft]);
  const launch = useRunMutation(async () => {
    const request = toCommandRequest(command, fields, draft);
    if (sweep) onSweepStarted((await createSweep(toSweepRequest(fields, draft, request), key.text)).id);
    else onStarted(await createRuns(request, key.text));
  });

  const edit = useCallback((change: Partial<Draft>): void => {
    setDraft((draft) => ({ ...draft, ...change }));
    setServerErrors([]);
  }, []);
  const setRaw = useCallback((path: string, raw?: Raw): void => {
    setDraft(({ raw: { [path]: _before, ...others }, ...draft }) => ({
      ...draft,
      raw: raw === undefined ? others : { ...others, [path]: raw },
    }));
    setServerErrors((before) => withoutPath(before, path));
  }, []);

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (refusal) return;
    if (draftErrors.length > 0) {
      focusFirstInvalid(form);
      return;
    }
    launch.mutate(undefined, {
      onError: (error) => {
        const problems = fieldErrorsOf(error);
        flushSync(() => setServerErrors(sweep ? sweepProblems(problems) : problems));
        focusFirstInvalid(form);
      },
    });
  };

  return (
    <form onSubmit={submit} noValidate>
      <div className={classes.layout}>
        <div className={classes.sidebar}>
          <section className={`panel ${classes.block}`}>
            <h2 className="section-title">Command</h2>
            <Choices
              label="Command"
              choices={commands.map(({ name, title, summary, hosts, other_hosts: others }) => ({
                id: name,
                title,
                text: [
                  summary,
                  `On ${hosts.join(', ')}.`,
                  ...(others.length > 0 ? [`Defined otherwise on ${others.join(', ')}.`] : []),
                ],
              }))}
              value={command.name}
              onChange={onCommand}
            />
          </section>
        </div>
        <LaunchBar
          fields={fields}
          draft={draft}
          draftErrors={draftErrors}
          serverErrors={serverErrors}
          hasSeeds={command.has_seed}
          refusal={refusal}
          starting={launch.isPending}
          onNSeeds={(nSeeds) => edit({ nSeeds })}
        >
          <span role="status" className="muted">
            Started by a worker of {plural(command.hosts.length, 'host')}.
          </span>
        </LaunchBar>
        <div className={classes.main}>
          {fields.length > 0 && (
            <section className={`panel ${classes.block}`} aria-label="Parameters">
              <h2 className="section-title">Parameters</h2>
              <div className={classes.fields}>
                {fields.map((field) => (
                  <ConfigInput
                    key={field.path}
                    field={field}
                    raw={rawOf(draft, field)}
                    serverError={errors.get(field.path)}
                    several
                    onChange={setRaw}
                    onReset={setRaw}
                  />
                ))}
              </div>
            </section>
          )}
          {command.has_seed && Object.keys(gridOf(fields, draft)).length > 0 && (
            <SweepFields draft={draft} error={errors.get('maxSeeds')} onChange={edit} />
          )}
          <RunFields
            draft={draft}
            errors={errors}
            sweep={sweep}
            command={command}
            proposedGroup={sweep ? draft.name.trim() || sweepName(draft) : groupOf(fields, draft)}
            onChange={edit}
          />
        </div>
      </div>
    </form>
  );
}
