import { Button } from '@mantine/core';
import { useCallback, useMemo, useState, type SubmitEvent } from 'react';
import { asProblem, type FieldProblem } from '@/api/problem';
import { startRuns, useRunChange, type Run, type RunFields as Request } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { plural } from '@/lib/format';
import { Choices } from './Choices';
import { CostLine } from './CostLine';
import {
  algorithmOf,
  presetsOf,
  problemsOf,
  settingsOf,
  toRequest,
  withAlgorithm,
  withPreset,
  withWorld,
  worldOf,
  type Catalogue,
  type Draft,
} from './draft';
import classes from './launch.module.css';
import { RunFields } from './RunFields';
import type { Raw } from '@/lib/schema';
import { SettingsPanel } from './SettingsPanel';
import { WorldPicker } from './WorldPicker';

type Props = { catalogue: Catalogue; start: Draft; onStarted: (runs: Run[]) => void };

const DEFAULTS = 'defaults';

/** Everything one may set before a run starts. */
export function LaunchForm({ catalogue, start, onStarted }: Props) {
  const [draft, setDraft] = useState(start);
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
  const launch = useRunChange(async (request: Request) => {
    onStarted(await startRuns(request));
  });

  const edit = useCallback((change: Partial<Draft>): void => {
    setDraft((draft) => ({ ...draft, ...change }));
    setRefusals([]);
  }, []);
  const onChange = useCallback((path: string, raw: Raw): void => {
    setDraft((draft) => ({ ...draft, raw: { ...draft.raw, [path]: raw } }));
    setRefusals((before) => before.filter(({ field }) => field !== path && field !== path.split('.')[0]));
  }, []);
  const onReset = useCallback((path: string): void => {
    setDraft((draft) => ({
      ...draft,
      raw: Object.fromEntries(Object.entries(draft.raw).filter(([each]) => each !== path)),
    }));
  }, []);

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (problems.length > 0) {
      document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
      return;
    }
    launch.mutate(toRequest(settings, draft), { onError: (error) => setRefusals(asProblem(error).fields) });
  };

  const algorithm = algorithmOf(catalogue, draft);
  const world = worldOf(catalogue, draft);
  const presets = presetsOf(catalogue, draft);
  const known = new Set(settings.map(({ path }) => path));
  const elsewhere = refusals.filter(({ field }) => !known.has(field));

  return (
    <form onSubmit={submit} noValidate>
      <div className={classes.layout}>
        <div className={classes.side}>
          <section className={`panel ${classes.block}`}>
            <h2 className="section-title">World</h2>
            <WorldPicker
              worlds={catalogue.environments}
              value={draft.environment}
              onChange={(id) => edit(withWorld(catalogue, draft, id))}
            />
            <span className="muted">{world?.summary}</span>
          </section>
          <section className={`panel ${classes.block}`}>
            <h2 className="section-title">Algorithm</h2>
            <Choices
              label="Algorithm"
              choices={catalogue.algorithms
                .filter((each) => world && each.observations.includes(world.observation))
                .map(({ id, title, summary }) => ({ id, title, text: summary }))}
              value={draft.algorithm}
              onChange={(id) => edit(withAlgorithm(catalogue, draft, id))}
            />
            <span className="muted">{algorithm?.paper}</span>
          </section>
          <section className={`panel ${classes.block}`}>
            <h2 className="section-title">Settings from</h2>
            <Choices
              label="Preset"
              choices={[
                { id: DEFAULTS, title: 'Defaults', text: 'Those of the algorithm for this kind of world.' },
                ...presets.map(({ id, title, description }) => ({ id, title, text: description })),
              ]}
              value={draft.preset ?? DEFAULTS}
              onChange={(id) => edit(withPreset(catalogue, draft, id))}
            />
          </section>
        </div>
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
            {plural(problems.length, 'field needs', 'fields need')} another value.
          </span>
        ) : (
          <CostLine settings={settings} draft={draft} world={world} />
        )}
        <Button type="submit" size="sm" loading={launch.isPending}>
          {Number(draft.nSeeds) > 1 ? `Start ${draft.nSeeds} runs` : 'Start run'}
        </Button>
      </footer>
    </form>
  );
}
