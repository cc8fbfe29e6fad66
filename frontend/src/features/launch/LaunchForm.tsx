import { TextInput } from '@mantine/core';
import { useCallback, useMemo, useState, type SubmitEvent } from 'react';
import { flushSync } from 'react-dom';
import { useInfiniteQuery } from '@tanstack/react-query';
import { forkRun } from '@/api/fork';
import { asProblem, type FieldProblem } from '@/api/problem';
import { checkpointsQuery } from '@/api/runParts';
import { startRuns, useRunChange, type Run } from '@/api/runs';
import { BusyButton } from '@/components/BusyButton';
import { CostLine } from './CostLine';
import {
  faultsText,
  MAX_SEEDS,
  nRunsOf,
  problemsOf,
  settingsOf,
  toForkRequest,
  toRequest,
  worldOf,
  type Catalogue,
  type Draft,
} from './draft';
import classes from './launch.module.css';
import { ForkSide } from './ForkSide';
import { LaunchSide } from './LaunchSide';
import { RunFields } from './RunFields';
import type { Raw } from '@/lib/schema';
import { SettingsPanel } from './SettingsPanel';

type Props = {
  catalogue: Catalogue;
  start: Draft;
  /** The run whose checkpoint the new one begins from. */
  parent?: Run | undefined;
  checkpoint?: string | undefined;
  onStarted: (runs: Run[]) => void;
};

/** What is still refused once a field, and with it its section, is touched. */
const withoutPath = (problems: readonly FieldProblem[], path: string): FieldProblem[] =>
  problems.filter(({ field }) => !['', path, path.split('.')[0]].includes(field));

/** What was refused, field by field; what concerns no field stands under an empty name. */
function refusalsOf(error: unknown): readonly FieldProblem[] {
  const { title, detail, fields } = asProblem(error);
  return fields.length > 0 ? fields : [{ field: '', message: `${title}. ${detail}` }];
}

/** Goes to the first field at fault, or to the first of the section that is. */
const focusFault = (form: HTMLFormElement): void =>
  form.querySelector<HTMLElement>('[aria-invalid=true], [data-fault] :is(input, select)')?.focus();

/** Everything one may set before a run starts. */
export function LaunchForm({ catalogue, start, parent, checkpoint, onStarted }: Props) {
  const [draft, setDraft] = useState(start);
  const [from, setFrom] = useState(checkpoint ?? null);
  const [refusals, setRefusals] = useState<readonly FieldProblem[]>([]);
  const settings = useMemo(
    () => settingsOf(catalogue, draft),
    // The fields follow from these two alone, whatever is typed into them.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [catalogue, draft.algorithm, draft.environment],
  );
  const { data } = useInfiniteQuery({ ...checkpointsQuery(parent?.id ?? ''), enabled: parent !== undefined });
  const checkpoints = data?.pages.flatMap(({ items }) => items) ?? [];
  const begun = parent && (checkpoints.find(({ id }) => from === null || id === from) ?? parent);
  const problems = problemsOf(settings, draft);
  const shown = useMemo(
    () => new Map([...refusals, ...problems].map(({ field, message }) => [field, message])),
    [refusals, problems],
  );
  const launch = useRunChange(async () => {
    const made = parent
      ? [await forkRun(parent.id, toForkRequest(settings, draft, from))]
      : await startRuns(toRequest(settings, draft));
    onStarted(made);
  });

  const edit = useCallback((change: Partial<Draft>): void => {
    setDraft((draft) => ({ ...draft, ...change }));
    setRefusals([]);
  }, []);
  const onChange = useCallback((path: string, raw: Raw): void => {
    setDraft((draft) => ({ ...draft, raw: { ...draft.raw, [path]: raw } }));
    setRefusals((before) => withoutPath(before, path));
  }, []);
  const onReset = useCallback((path: string): void => {
    setDraft((draft) => ({
      ...draft,
      raw: Object.fromEntries(Object.entries(draft.raw).filter(([each]) => each !== path)),
    }));
    setRefusals((before) => withoutPath(before, path));
  }, []);

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (problems.length > 0) {
      focusFault(form);
      return;
    }
    launch.mutate(undefined, {
      onError: (error) => {
        flushSync(() => setRefusals(refusalsOf(error)));
        focusFault(form);
      },
    });
  };

  const world = worldOf(catalogue, draft);
  const nRuns = nRunsOf(draft);

  return (
    <form onSubmit={submit} noValidate>
      <div className={classes.layout}>
        {parent ? (
          <ForkSide
            parent={parent}
            checkpoints={checkpoints}
            checkpoint={from}
            problem={shown.get('checkpoint')}
            onCheckpoint={(id) => {
              setFrom(id);
              setRefusals([]);
            }}
          />
        ) : (
          <LaunchSide catalogue={catalogue} draft={draft} onEdit={edit} />
        )}
        <div style={{ display: 'grid', gap: 16, minWidth: 0 }}>
          <SettingsPanel
            settings={settings}
            draft={draft}
            refusals={shown}
            onChange={onChange}
            onReset={onReset}
          />
          <RunFields draft={draft} problems={shown} onChange={edit} />
        </div>
      </div>
      <footer className={classes.footer}>
        {refusals.length > 0 ? (
          <span role="alert" className={classes.problem}>
            Not started. {faultsText(settings, [...refusals, ...problems])}
          </span>
        ) : problems.length > 0 ? (
          <span role="status" className={classes.problem}>
            {faultsText(settings, problems)}
          </span>
        ) : (
          <CostLine settings={settings} draft={draft} world={world} begun={begun} />
        )}
        <span className="grow" />
        {!parent && (
          <span className="row">
            <label htmlFor="n-seeds">Seeds</label>
            <TextInput
              id="n-seeds"
              w={56}
              inputMode="numeric"
              autoComplete="off"
              aria-label={`Number of seeds, 1 to ${MAX_SEEDS}: one run each`}
              title={shown.get('nSeeds') ?? 'One run for each seed.'}
              classNames={{ input: 'num' }}
              value={draft.nSeeds}
              error={shown.has('nSeeds')}
              // What is typed replaces the one seed.
              onFocus={({ currentTarget }) => currentTarget.select()}
              onChange={({ currentTarget }) => edit({ nSeeds: currentTarget.value })}
            />
          </span>
        )}
        <BusyButton type="submit" size="sm" loading={launch.isPending}>
          {parent ? 'Start fork' : nRuns > 1 ? `Start ${nRuns} runs` : 'Start run'}
        </BusyButton>
      </footer>
    </form>
  );
}
