import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { runActions, useRunChange, type Run, type StopSpec } from '@/api/runs';
import { Confirm } from '@/components/Confirm';
import { nextBound } from '@/lib/bound';
import { formatWhole } from '@/lib/format';
import { parseNumber } from '@/lib/number';
import type { Action } from './actions';

type Props = { run: Run; action: Action | null; onClose: () => void; onDeleted?: () => void };

const stopOf = (run: Run): StopSpec => run.spec.stop as StopSpec;

function offeredBound(run: Run): string {
  const bound = stopOf(run).agent_steps;
  return bound == null ? '' : formatWhole(nextBound(bound, run.agent_steps));
}

/** Asks before an action, says what it will do, and does it. */
export function ActionDialog({ run, action, onClose, onDeleted }: Props) {
  const [bound, setBound] = useState(() => offeredBound(run));
  const asksBound = action?.id === 'resume' && stopOf(run).agent_steps != null;
  const badBound = asksBound && !Number.isInteger(parseNumber(bound));
  const resumeStop = (): StopSpec | undefined => {
    const stop = stopOf(run);
    if (stop.agent_steps == null) return undefined;
    const asked = parseNumber(bound);
    return asked === stop.agent_steps ? undefined : { ...stop, agent_steps: asked };
  };

  const change = useRunChange(async (id: Action['id']): Promise<void> => {
    if (id === 'resume') await runActions.resume(run.id, resumeStop());
    else if (id === 'archive' || id === 'unarchive') await runActions.archive(run.id, id === 'archive');
    else await runActions[id](run.id);
    if (id === 'delete') onDeleted?.();
  });

  return (
    <Confirm
      opened={action !== null}
      onClose={onClose}
      title={action ? `${action.label.replace(/ \(.*/, '')}: ${run.name}` : ''}
      action={action?.label ?? ''}
      danger={action?.danger ?? false}
      disabled={badBound}
      onConfirm={() => (action ? change.mutateAsync(action.id) : Promise.resolve())}
    >
      {action?.says}
      {asksBound && (
        <TextInput
          mt={12}
          label="Train until"
          description={`It has done ${formatWhole(run.agent_steps)} agent steps.`}
          inputMode="numeric"
          classNames={{ input: 'num' }}
          value={bound}
          onChange={({ currentTarget }) => setBound(currentTarget.value)}
          error={badBound && 'Give a whole number of agent steps.'}
        />
      )}
    </Confirm>
  );
}
