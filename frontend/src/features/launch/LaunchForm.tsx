import { Button, TextInput } from '@mantine/core';
import { useCallback, useMemo, useState, type SubmitEvent } from 'react';
import { forkRun } from '@/api/fork';
import { asProblem, type FieldProblem } from '@/api/problem';
import { startRuns, useRunChange, type Run } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { plural } from '@/lib/format';
import { CostLine } from './CostLine';
import {
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
  problems.filter(({ field }) => field !== path && field !== path.split('.')[0]);

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

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (problems.length > 0) {
      document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
      return;
    }
    launch.mutate(undefined, { onError: (error) => setRefusals(asProblem(error).fields) });
  };

  const world = worldOf(catalogue, draft);
  const nRuns = nRunsOf(draft);
  const known = new Set(settings.map(({ path }) => path));
  const elsewhere = refusals.filter(({ field }) => !known.has(field));

  return (
    <form onSubmit={submit} noValidate>
      <div className={classes.layout}>
        {parent ? (
          <ForkSide parent={parent} checkpoint={from} onCheckpoint={setFrom} />
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
          {launch.isError && elsewhere.length + refusals.length === 0 && <Problem error={launch.error} />}
          {elsewhere.map(({ field, message }) => (
            <p key={field} role="alert" className={classes.problem}>
              {field}: {message}
            </p>
          ))}
        </div>
      </div>
      <footer className={classes.footer}>
        {problems.length > 0 ? (
          <span role="status" className={classes.problem}>
            {shown.get('nSeeds') ?? `${plural(problems.length, 'field needs', 'fields need')} another value.`}
          </span>
        ) : (
          <CostLine settings={settings} draft={draft} world={world} />
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
        <Button type="submit" size="sm" loading={launch.isPending}>
          {parent ? 'Start fork' : nRuns > 1 ? `Start ${nRuns} runs` : 'Start run'}
        </Button>
      </footer>
    </form>
  );
}
