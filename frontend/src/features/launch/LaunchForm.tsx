import { Button } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState, type SubmitEvent } from 'react';
import { flushSync } from 'react-dom';
import { newKey } from '@/api/client';
import { hostsQuery } from '@/api/hosts';
import { useReconnection } from '@/api/liveUpdates';
import { asProblem, isUnreachable, type FieldProblem } from '@/api/problem';
import { checkpointsQuery } from '@/api/runResources';
import { forkRun, type Run, createRuns, useRunMutation } from '@/api/runs';
import { startSetsQuery } from '@/api/startSets';
import { createSweep } from '@/api/sweeps';
import { useDenied } from '@/components/permission';
import type { TermId } from '@/components/glossary';
import { Terms } from '@/components/Term';
import { missingExtra } from '@/lib/environments';
import type { Raw } from '@/lib/schema';
import { ConfigPanels } from './ConfigPanels';
import { CostLine, useEstimate } from './CostLine';
import { baseOf, environmentOf, fieldsOf, withStartSets, type Catalogue, type Draft } from './draft';
import { ForkSidebar } from './ForkSidebar';
import classes from './launch.module.css';
import { LaunchBar } from './LaunchBar';
import { LaunchSidebar } from './LaunchSidebar';
import { notesOf } from './notes';
import { PresetPanel } from './PresetPanel';
import {
  groupOf,
  gridOf,
  isSweep,
  sweepName,
  sweepProblems,
  toForkRequest,
  toRequest,
  toSweepRequest,
} from './requests';
import { RunFields } from './RunFields';
import { SweepFields } from './SweepFields';
import { forgetUnsent, keepUnsent, unsent } from './unsent';
import { validate } from './validation';

type Props = {
  /** What this form is for: what is entered in it is kept under this name until it is started. */
  name: string;
  catalogue: Catalogue;
  initialDraft: Draft;
  /** The run to fork. */
  parent?: Run | undefined;
  checkpoint?: string | undefined;
  /** Whether all hyperparameters are shown. */
  all: boolean;
  onAll: (all: boolean) => void;
  onStarted: (runs: Run[]) => void;
  onSweepStarted: (id: string) => void;
};

/** The errors that remain after an edit, which clears those of its field, of its section and of the form. */
export const withoutPath = (errors: readonly FieldProblem[], path: string): FieldProblem[] =>
  errors.filter(({ field }) => !['', path, path.split('.')[0]].includes(field));

/** The service's errors by field; an error of the whole request has an empty field. */
export function fieldErrorsOf(error: unknown): readonly FieldProblem[] {
  const { title, detail, fields } = asProblem(error);
  return fields.length > 0 ? fields : [{ field: '', message: `${title}. ${detail}` }];
}

/** Words of presets and settings; after the start button, so that few tabs lead to it. */
const TERMS: readonly TermId[] = ['preset', 'network', 'cropped_frame', 'no_op', 'agent_steps', 'seed'];

/** Focuses the first invalid input, or the first input of an invalid section. */
export const focusFirstInvalid = (form: HTMLFormElement): void =>
  form.querySelector<HTMLElement>('[aria-invalid=true], [data-invalid] :is(input, select)')?.focus();

/** What a clone or a fork changes counts as edited; what a preset changes does not. */
const editedInitially = ({ preset, raw }: Draft): ReadonlySet<string> =>
  new Set(preset === null ? Object.keys(raw) : []);

/** The form for a new run or a fork. */
export function LaunchForm(props: Props) {
  const { name, catalogue, initialDraft, parent, checkpoint, all, onAll, onStarted, onSweepStarted } = props;
  const [before] = useState(() => unsent(name, catalogue));
  const [restored, setRestored] = useState(before !== null);
  const [draft, setDraft] = useState(before?.draft ?? initialDraft);
  const from = checkpoint ?? null;
  // An address with another checkpoint is a newer choice than the draft's.
  const [checkpointId, setCheckpointId] = useState(
    before?.checkpoint.from === from ? before.checkpoint.chosen : from,
  );
  const [serverErrors, setServerErrors] = useState<readonly FieldProblem[]>([]);
  const [edited, setEdited] = useState<ReadonlySet<string>>(() =>
    before ? new Set(before.edited) : editedInitially(initialDraft),
  );
  const [untouched, setUntouched] = useState(draft);
  useEffect(() => {
    if (draft !== untouched || checkpointId !== from)
      keepUnsent(name, { draft, edited: [...edited], checkpoint: { from, chosen: checkpointId } });
  }, [name, draft, edited, untouched, from, checkpointId]);
  // A changed draft is another request, and a repeated one the same.
  const key = useMemo(() => ({ draft, checkpointId, text: newKey() }), [draft, checkpointId]);
  const { data: hosts } = useQuery(hostsQuery);
  const denied = useDenied('operator');
  const chosen = [
    catalogue.algorithms.find(({ id }) => id === draft.algorithm),
    environmentOf(catalogue, draft),
  ];
  const lacking = chosen.map((item) => item && missingExtra(item, hosts?.items)).find(Boolean);
  const { data: sets } = useQuery({ ...startSetsQuery, enabled: draft.environment.startsWith('ALE/') });
  const fields = useMemo(
    () => withStartSets(fieldsOf(catalogue, draft), sets, draft.environment),
    // The fields depend on these two parts of the draft only.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [catalogue, sets, draft.algorithm, draft.environment],
  );
  const base = useMemo(
    () => baseOf(catalogue, draft),
    // The preset's values depend on these parts of the draft only.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [catalogue, draft.algorithm, draft.environment, draft.preset],
  );
  const pages = useInfiniteQuery({ ...checkpointsQuery(parent?.id ?? ''), enabled: parent !== undefined });
  const checkpoints = pages.data?.pages.flatMap(({ items }) => items) ?? [];
  const { fetchNextPage, hasNextPage, isFetching, isFetchNextPageError } = pages;
  const chosenIsOlder =
    checkpointId !== null &&
    hasNextPage &&
    !isFetching &&
    !isFetchNextPageError &&
    !checkpoints.some(({ id }) => id === checkpointId);
  useEffect(() => {
    if (chosenIsOlder) void fetchNextPage();
  }, [chosenIsOlder, fetchNextPage]);
  const uncheckpointed =
    pages.isSuccess && checkpoints.length === 0 ? 'The run has no checkpoint to fork from.' : undefined;
  const refusal = denied ?? lacking ?? uncheckpointed;
  const startingPoint =
    parent && (checkpoints.find(({ id }) => checkpointId === null || id === checkpointId) ?? parent);
  const draftErrors = validate(fields, draft, parent !== undefined);
  const { error: refused } = useEstimate(fields, draft);
  const errors = useMemo(
    () =>
      new Map(
        [...(refused ? asProblem(refused).fields : []), ...serverErrors, ...draftErrors].map(
          ({ field, message }) => [field, message],
        ),
      ),
    [refused, serverErrors, draftErrors],
  );
  const sweep = parent === undefined && isSweep(fields, draft);
  const launch = useRunMutation(async () => {
    if (sweep) {
      const { id } = await createSweep(toSweepRequest(fields, draft), key.text);
      forgetUnsent(name);
      onSweepStarted(id);
      return;
    }
    const created = parent
      ? [await forkRun(parent.id, toForkRequest(fields, draft, checkpointId), key.text)]
      : await createRuns(toRequest(fields, draft), key.text);
    forgetUnsent(name);
    onStarted(created);
  });

  useReconnection(() => {
    if (isUnreachable(launch.error)) setServerErrors([]);
  });

  const edit = useCallback((change: Partial<Draft>): void => {
    setDraft((draft) => ({ ...draft, ...change }));
    setServerErrors([]);
  }, []);
  const onChange = useCallback((path: string, raw: Raw): void => {
    setDraft((draft) => ({ ...draft, raw: { ...draft.raw, [path]: raw } }));
    setEdited((before) => (before.has(path) ? before : new Set([...before, path])));
    setServerErrors((before) => withoutPath(before, path));
  }, []);
  const onReset = useCallback(
    (path: string): void => {
      setDraft((draft) => {
        const raw = Object.fromEntries(Object.entries(draft.raw).filter(([key]) => key !== path));
        return { ...draft, raw: path in base ? { ...raw, [path]: base[path] ?? '' } : raw };
      });
      setServerErrors((before) => withoutPath(before, path));
    },
    [base],
  );

  const startOver = (): void => {
    forgetUnsent(name);
    setDraft(initialDraft);
    setUntouched(initialDraft);
    setCheckpointId(from);
    setEdited(editedInitially(initialDraft));
    setServerErrors([]);
    setRestored(false);
  };

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
      {restored && (
        <p className={`row ${classes.restored}`}>
          <span className="muted">Draft restored.</span>
          <Button variant="default" size="compact-xs" onClick={startOver}>
            Reset form
          </Button>
        </p>
      )}
      <div className={classes.layout}>
        {parent ? (
          <ForkSidebar
            parent={parent}
            checkpoints={checkpoints}
            checkpoint={checkpointId}
            hasOlder={hasNextPage}
            loadingOlder={isFetching}
            error={errors.get('checkpoint')}
            onCheckpoint={(id) => {
              setCheckpointId(id);
              setServerErrors([]);
            }}
            onOlder={() => void fetchNextPage()}
          />
        ) : (
          <>
            <LaunchSidebar catalogue={catalogue} draft={draft} hosts={hosts?.items} onEdit={edit} />
            <PresetPanel catalogue={catalogue} draft={draft} onEdit={edit} />
          </>
        )}
        {/* Before the fields, so that few tabs lead to it; drawn below them. */}
        <LaunchBar
          fields={fields}
          draft={draft}
          draftErrors={draftErrors}
          serverErrors={serverErrors}
          isFork={startingPoint !== undefined}
          refusal={refusal}
          starting={launch.isPending}
          onNSeeds={(nSeeds) => edit({ nSeeds })}
        >
          <CostLine
            fields={fields}
            draft={draft}
            environment={environmentOf(catalogue, draft)}
            startingPoint={startingPoint}
          />
        </LaunchBar>
        <div className={classes.main}>
          <Terms ids={[draft.algorithm as TermId, ...TERMS]} />
          <ConfigPanels
            fields={fields}
            draft={draft}
            base={base}
            errors={errors}
            notes={notesOf(draft, environmentOf(catalogue, draft), hosts?.items ?? [])}
            edited={edited}
            all={all}
            onAll={onAll}
            several={parent === undefined}
            onChange={onChange}
            onReset={onReset}
          />
          {parent === undefined && Object.keys(gridOf(fields, draft)).length > 0 && (
            <SweepFields draft={draft} error={errors.get('maxSeeds')} onChange={edit} />
          )}
          <RunFields
            draft={draft}
            errors={errors}
            sweep={sweep}
            proposedGroup={
              parent ? '' : sweep ? draft.name.trim() || sweepName(draft) : groupOf(fields, draft)
            }
            onChange={edit}
          />
        </div>
      </div>
    </form>
  );
}
