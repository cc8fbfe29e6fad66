import { Button, Checkbox, Group, Modal, NativeSelect, NumberInput, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import {
  alertActions,
  useAlertMutation,
  type AlertKind,
  type Rule,
  type RuleRequest,
  type Target,
} from '@/api/alerts';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { ProjectInput } from '@/components/ProjectInput';
import classes from './alerts.module.css';
import { KINDS } from './words';

/** A rule to be changed, which has an id, or what is known of a new one. */
export type RuleDraft = Partial<Rule>;

const OF_RUNS: ReadonlySet<string> = new Set(KINDS[0]?.kinds.map(({ kind }) => kind));
const DEFAULT_MINUTES = 10;

type Scope = 'all' | 'project' | 'group' | 'run';
type Typed = number | string;

const numberOf = (typed: Typed): number | null =>
  typed === '' || !Number.isFinite(Number(typed)) ? null : Number(typed);

/** Creates a rule, or replaces one. */
export function RuleDialog({
  draft,
  targets,
  onClose,
}: {
  draft: RuleDraft;
  targets: readonly Target[];
  onClose: () => void;
}) {
  const denied = useDenied();
  const [kinds, setKinds] = useState<string[]>(draft.kinds ?? ['failed', 'lost']);
  const [scope, setScope] = useState<Scope>(
    draft.run_id ? 'run' : draft.group ? 'group' : draft.project ? 'project' : 'all',
  );
  const [project, setProject] = useState(draft.project ?? '');
  const [group, setGroup] = useState(draft.group ?? '');
  const [minutes, setMinutes] = useState<Typed>(draft.minutes ?? DEFAULT_MINUTES);
  const [metric, setMetric] = useState(draft.metric ?? '');
  const [comparison, setComparison] = useState(draft.comparison ?? 'above');
  const [value, setValue] = useState<Typed>(draft.value ?? '');
  const [score, setScore] = useState<Typed>(draft.score ?? '');
  const [chosen, setChosen] = useState<string[]>(draft.targets ?? []);
  const save = useAlertMutation((rule: RuleRequest) =>
    draft.id === undefined ? alertActions.createRule(rule) : alertActions.replaceRule(draft.id, rule),
  );
  const offered = KINDS.filter((_, at) => scope === 'all' || at === 0);
  const has = (kind: AlertKind): boolean => kinds.includes(kind);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const rule: RuleRequest = {
      kinds: kinds.filter((kind) => scope === 'all' || OF_RUNS.has(kind)) as AlertKind[],
      run_id: scope === 'run' ? (draft.run_id ?? null) : null,
      group: scope === 'group' ? group : null,
      project: scope === 'project' ? project : null,
      minutes: has('no_points') || has('metric') ? numberOf(minutes) : null,
      ...(has('metric') ? { metric, comparison, value: numberOf(value) } : {}),
      score: has('score') ? numberOf(score) : null,
      targets: chosen,
    };
    save.mutate(rule, { onSuccess: onClose });
  };
  return (
    <Modal opened onClose={onClose} title={draft.id === undefined ? 'New rule' : 'Edit rule'} size="md">
      <form noValidate onSubmit={submit} className={classes.form}>
        <NativeSelect
          label="About"
          data={[
            { value: 'all', label: 'All runs, machines, sweeps and studies' },
            { value: 'project', label: 'The runs of a project' },
            { value: 'group', label: 'The runs of a group' },
            ...(draft.run_id ? [{ value: 'run', label: draft.run_name ?? 'The run of the last page' }] : []),
          ]}
          value={scope}
          onChange={({ currentTarget }) => setScope(currentTarget.value as Scope)}
        />
        {scope === 'project' && <ProjectInput required value={project} onChange={setProject} />}
        {scope === 'group' && (
          <TextInput
            label="Group"
            required
            value={group}
            onChange={({ currentTarget }) => setGroup(currentTarget.value)}
          />
        )}
        <Checkbox.Group label="Alert me when" value={kinds} onChange={setKinds}>
          {offered.map(({ about, kinds: ofThese }) => (
            <div key={about} role="group" aria-label={about} className={classes.kinds}>
              {ofThese.map(({ kind, label }) => (
                <Checkbox key={kind} value={kind} label={about === 'Runs' ? `a run ${label}` : label} />
              ))}
            </div>
          ))}
        </Checkbox.Group>
        {has('metric') && (
          <Group grow align="start" gap={8}>
            <TextInput
              label="Metric"
              required
              placeholder="loss/value"
              value={metric}
              onChange={({ currentTarget }) => setMetric(currentTarget.value)}
            />
            <NativeSelect
              label="is"
              data={['above', 'below']}
              value={comparison}
              onChange={({ currentTarget }) => setComparison(currentTarget.value as typeof comparison)}
            />
            <NumberInput label="Value" required hideControls value={value} onChange={setValue} />
          </Group>
        )}
        {has('score') && (
          <NumberInput label="Score" required hideControls value={score} onChange={setScore} />
        )}
        {(has('no_points') || has('metric')) && (
          <NumberInput label="Minutes" required hideControls min={0} value={minutes} onChange={setMinutes} />
        )}
        {targets.length > 0 && (
          <Checkbox.Group
            label="Also send them to"
            {...(denied === undefined ? {} : { description: denied })}
            value={chosen}
            onChange={setChosen}
          >
            <div className={classes.kinds}>
              {targets.map(({ id, name, kind }) => (
                <Checkbox key={id} value={id} label={`${name} (${kind})`} disabled={denied !== undefined} />
              ))}
            </div>
          </Checkbox.Group>
        )}
        {save.isError && <Problem error={save.error} invalid="Check the rule" />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <LoadingButton type="submit" loading={save.isPending}>
            {draft.id === undefined ? 'Create rule' : 'Save rule'}
          </LoadingButton>
        </Group>
      </form>
    </Modal>
  );
}
