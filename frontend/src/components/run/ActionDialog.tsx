import { Radio, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { runActions, useRunMutation, type ResumeRequest, type Run, type StopSpec } from '@/api/runs';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { showToast } from '@/components/toasts';
import { formatInteger, parseNumber } from '@/lib/format';
import { nextBound } from '@/lib/run';
import type { Action } from './actions';

type Props = { run: Run; action: Action | null; onClose: () => void; onDeleted?: () => void };

const stopOf = (run: Run): StopSpec => run.spec.stop as StopSpec;

/** A finished run needs a higher bound; any other can complete the one that it has. */
function proposedBound(run: Run): string {
  const bound = stopOf(run).agent_steps;
  if (bound == null) return '';
  return formatInteger(run.state === 'finished' ? nextBound(bound, run.agent_steps) : bound);
}

/** Whether the run ended at a limit unfinished, for example because it was stopped during its last evaluation. */
function isUnfinishedAtLimit(run: Run): boolean {
  const { agent_steps, wall_time_s, score } = stopOf(run);
  return (
    run.state !== 'finished' &&
    ((agent_steps != null && run.agent_steps >= agent_steps) ||
      (wall_time_s != null && (run.wall_time_s ?? 0) >= wall_time_s) ||
      (score != null && run.score != null && run.score >= score))
  );
}

/** Describes an action, asks for confirmation, and runs it. */
export function ActionDialog({ run, action, onClose, onDeleted }: Props) {
  const [bound, setBound] = useState(() => proposedBound(run));
  const asksBound = action?.id === 'resume' && stopOf(run).agent_steps != null;
  const invalidBound = asksBound && !Number.isInteger(parseNumber(bound));
  const completes =
    action?.id === 'resume' &&
    isUnfinishedAtLimit(run) &&
    (!asksBound || parseNumber(bound) === stopOf(run).agent_steps);
  const [annealing, setAnnealing] = useState<Annealing>(
    run.spec.annealing_agent_steps == null ? 'extend' : 'keep',
  );
  const annealed = asksBound && !invalidBound && !completes ? annealingChange(run, parseNumber(bound)) : null;
  const resumeRequest = (): ResumeRequest => {
    const stop = stopOf(run);
    const requested = parseNumber(bound);
    return {
      ...(asksBound && requested !== stop.agent_steps ? { stop: { ...stop, agent_steps: requested } } : {}),
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
      showToast(`Deleted ${run.name}.`, () => restore.mutateAsync(run.id));
      onDeleted?.();
    } else if (id === 'archive') {
      showToast(`Archived ${run.name}.`, () => unarchive.mutateAsync(run.id));
    }
  });

  return (
    <ConfirmDialog
      opened={action !== null}
      onClose={onClose}
      title={action ? `${action.label.replace(/ \(.*/, '')}: ${run.name}` : ''}
      action={action ? (action.confirm?.action ?? action.label) : ''}
      dismiss={action?.confirm?.dismiss ?? 'Cancel'}
      danger={action?.danger ?? false}
      disabled={invalidBound}
      onConfirm={() => (action ? change.mutateAsync(action.id) : Promise.resolve())}
    >
      {action?.description}
      {asksBound && (
        <TextInput
          mt={12}
          label="Train until"
          description={`So far it has trained for ${formatInteger(run.agent_steps)} agent steps.`}
          inputMode="numeric"
          classNames={{ input: 'num' }}
          value={bound}
          onChange={({ currentTarget }) => setBound(currentTarget.value)}
          error={invalidBound && 'Enter a whole number of agent steps.'}
        />
      )}
      {completes && (
        <Text inherit mt={8}>
          It has reached its limit: it completes what is missing, such as its last evaluation, and finishes.
        </Text>
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
