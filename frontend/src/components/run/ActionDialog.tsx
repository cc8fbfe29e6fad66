import { Radio, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { runActions, useRunMutation, type ResumeRequest, type Run, type StopSpec } from '@/api/runs';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { showToast } from '@/components/toasts';
import { formatDuration, formatInteger, formatScore, parseNumber } from '@/lib/format';
import { nextBound } from '@/lib/run';
import type { Action } from './actions';
import { InStudies } from './InStudies';

type Props = {
  run: Run;
  /** What the run is called in the view; default: its name. */
  label?: string;
  action: Action | null;
  onClose: () => void;
  onDeleted?: () => void;
};

const stopOf = (run: Run): StopSpec => run.spec.stop as StopSpec;

type Limit = 'agent_steps' | 'wall_time_s' | 'score';

const LIMITS: Readonly<Record<Limit, { label: string; rule: string; isValid: (typed: string) => boolean }>> =
  {
    agent_steps: {
      label: 'Train until',
      rule: 'Enter a whole number of agent steps.',
      isValid: (typed) => Number.isInteger(parseNumber(typed)),
    },
    wall_time_s: {
      label: 'Training time (s)',
      rule: 'Enter a number of seconds above 0.',
      isValid: (typed) => parseNumber(typed) > 0,
    },
    score: {
      label: 'Score',
      rule: 'Enter a number, or nothing for no limit.',
      isValid: (typed) => typed.trim() === '' || Number.isFinite(parseNumber(typed)),
    },
  };

/** Of the latest episodes is a run's score. */
const SCORE_EPISODES = 100;

const limitsOf = (run: Run): Limit[] =>
  (Object.keys(LIMITS) as Limit[]).filter((limit) => stopOf(run)[limit] != null);

/** What a run has reached of a limit, in words. */
function reachedOf(run: Run, limit: Limit): string {
  if (limit === 'agent_steps')
    return `So far it has trained for ${formatInteger(run.agent_steps)} agent steps.`;
  if (limit === 'wall_time_s') return `So far it has trained for ${formatDuration(run.wall_time_s ?? 0)}.`;
  return `Its score is ${formatScore(run.score)}. The run ends once it reaches the one here; leave it empty for no such limit.`;
}

/** Whether the mean of the last 100 returns has reached a bound, which counts once there are as many. */
const hasReachedScore = (run: Run, bound: number): boolean =>
  run.score != null && run.score >= bound && run.episodes >= SCORE_EPISODES;

/** A finished run needs a higher limit where it has reached one; any other can complete what it has. */
function proposed(run: Run, limit: Limit): string {
  const bound = stopOf(run)[limit];
  if (bound == null) return '';
  const isFinished = run.state === 'finished';
  if (limit === 'score') return isFinished && hasReachedScore(run, bound) ? '' : String(bound);
  const done = limit === 'agent_steps' ? run.agent_steps : (run.wall_time_s ?? 0);
  const next = isFinished ? nextBound(bound, done) : bound;
  return Number.isInteger(next) ? formatInteger(next) : String(next);
}

/** A limit as typed; null for none. */
const limitOf = (typed: string): number | null => (typed.trim() === '' ? null : parseNumber(typed));

/** Whether the run ended at a limit unfinished, for example because it was stopped during its last evaluation. */
function isUnfinishedAtLimit(run: Run): boolean {
  const { agent_steps, wall_time_s, score } = stopOf(run);
  return (
    run.state !== 'finished' &&
    ((agent_steps != null && run.agent_steps >= agent_steps) ||
      (wall_time_s != null && (run.wall_time_s ?? 0) >= wall_time_s) ||
      (score != null && hasReachedScore(run, score)))
  );
}

/** Describes an action, asks for confirmation, and runs it. */
export function ActionDialog({ run, label = run.name, action, onClose, onDeleted }: Props) {
  const [typed, setTyped] = useState<Readonly<Partial<Record<Limit, string>>>>({});
  const limits = action?.id === 'resume' ? limitsOf(run) : [];
  const textOf = (limit: Limit): string => typed[limit] ?? proposed(run, limit);
  const isInvalid = limits.some((limit) => !LIMITS[limit].isValid(textOf(limit)));
  const changed = limits.filter((limit) => limitOf(textOf(limit)) !== stopOf(run)[limit]);
  const completes = action?.id === 'resume' && isUnfinishedAtLimit(run) && changed.length === 0;
  const [annealing, setAnnealing] = useState<Annealing>(
    run.spec.annealing_agent_steps == null ? 'extend' : 'keep',
  );
  const annealed =
    limits.includes('agent_steps') && !isInvalid && !completes
      ? annealingChange(run, parseNumber(textOf('agent_steps')))
      : null;
  const resumeRequest = (): ResumeRequest => {
    const requested = Object.fromEntries(changed.map((limit) => [limit, limitOf(textOf(limit))]));
    return {
      ...(changed.length > 0 ? { stop: { ...stopOf(run), ...requested } } : {}),
      ...(annealed ? { annealing } : {}),
    };
  };

  const restore = useRunMutation((id: string) => runActions.restore(id));
  const unarchive = useRunMutation((id: string) => runActions.archive(id, false));
  const change = useRunMutation(async (id: Action['id']): Promise<void> => {
    if (id === 'resume') await runActions.resume(run.id, resumeRequest());
    else if (id === 'archive' || id === 'unarchive') await runActions.archive(run.id, id === 'archive');
    else await runActions[id](run.id);
    if (id === 'delete') {
      showToast(`Deleted ${label}.`, () => restore.mutateAsync(run.id));
      onDeleted?.();
    } else if (id === 'archive') {
      showToast(`Archived ${label}.`, () => unarchive.mutateAsync(run.id));
    }
  });

  return (
    <ConfirmDialog
      opened={action !== null}
      onClose={onClose}
      title={action ? `${action.label.replace(/ \(.*/, '')}: ${label}` : ''}
      action={action ? (action.confirm?.action ?? action.label) : ''}
      dismiss={action?.confirm?.dismiss ?? 'Cancel'}
      danger={action?.danger ?? false}
      disabled={isInvalid}
      onConfirm={() => (action ? change.mutateAsync(action.id) : Promise.resolve())}
    >
      {action?.description}
      {action?.id === 'delete' && (
        <InStudies runId={run.id}>
          Their figures lose it, until Retry on their pages trains it anew.
        </InStudies>
      )}
      {limits.map((limit) => (
        <TextInput
          key={limit}
          mt={12}
          label={LIMITS[limit].label}
          description={reachedOf(run, limit)}
          inputMode={limit === 'score' ? 'text' : 'decimal'}
          classNames={{ input: 'num' }}
          value={textOf(limit)}
          onChange={({ currentTarget: { value } }) => setTyped((before) => ({ ...before, [limit]: value }))}
          error={!LIMITS[limit].isValid(textOf(limit)) && LIMITS[limit].rule}
        />
      ))}
      {completes && (
        <Text inherit mt={8}>
          It has reached its limit: it completes what is missing, such as its last evaluation, and finishes.
        </Text>
      )}
      {changed.length > 0 && (
        <InStudies runId={run.id}>With another limit it no longer counts there.</InStudies>
      )}
      {annealed && (
        <Radio.Group
          mt={12}
          label="Learning rate"
          description={`Currently annealed to 0 over ${formatInteger(annealed.over)} agent steps.`}
          value={annealing}
          onChange={setAnnealing}
        >
          <Stack gap={8} mt={8}>
            <Radio value="extend" label="Anneal to the new limit" description={annealed.extended} />
            <Radio value="keep" label="Keep its schedule" description={annealed.kept} />
          </Stack>
        </Radio.Group>
      )}
    </ConfirmDialog>
  );
}

type Annealing = NonNullable<ResumeRequest['annealing']>;

const percent = (fraction: number): string => `${Math.round(100 * Math.max(0, fraction))} %`;

/** What a resume up to `bound` agent steps may do to an annealed learning rate; null if there is no choice. */
export function annealingChange(run: Run, bound: number) {
  const spec = run.spec as {
    config?: { learning_rate_schedule?: string };
    annealing_agent_steps?: number | null;
    stop?: { agent_steps?: number | null };
  };
  const over = spec.annealing_agent_steps ?? spec.stop?.agent_steps;
  if (spec.config?.learning_rate_schedule !== 'linear' || over == null || over === bound) return null;
  const before = percent(1 - run.agent_steps / over);
  const after = percent(1 - run.agent_steps / bound);
  return {
    over,
    extended: `It changes immediately from ${before} to ${after} of its initial value.`,
    kept:
      over < bound
        ? `It continues from ${before}; from ${formatInteger(over)} agent steps on it is 0, and nothing is learned.`
        : `It continues from ${before}.`,
  };
}
