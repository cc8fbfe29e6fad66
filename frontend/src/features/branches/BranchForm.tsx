import { Button, Group, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { createBranch, runsOfQuery, useBranchMutation, type Branch } from '@/api/branches';
import { asProblem } from '@/api/problem';
import { checkpointsQuery, type Episode } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { formatInteger, parseNumber } from '@/lib/format';

const [MAX_CONTINUATIONS, MAX_HORIZON] = [64, 5000] as const;
const DEFAULTS = { continuations: '16', horizon: '500', run: '', checkpoint: '', action: '' };
const FIELDS = ['decision', 'continuations', 'horizon', 'checkpoint', 'first_action'] as const;

type Props = {
  run: Run;
  episode: Episode;
  /** The decision that is shown. */
  decision: number;
  actionNames: readonly string[];
  /** Whether actions are continuous, so that none can be forced. */
  continuous: boolean;
  onCreated: (branch: Branch) => void;
  onClose: () => void;
};

/** The error of a number field that contains no whole number between the bounds. */
const boundsError = (raw: string, min: number, max: number): string | undefined => {
  const value = parseNumber(raw);
  return Number.isInteger(value) && value >= min && value <= max
    ? undefined
    : `A whole number from ${formatInteger(min)} to ${formatInteger(max)}`;
};

/** How to go on from a decision: how often, how far, by which policy, and with which first action. */
export function BranchForm({ run, episode, decision, actionNames, continuous, onCreated, onClose }: Props) {
  const [values, setValues] = useState({ ...DEFAULTS, decision: String(decision + 1) });
  const policyRun = values.run || run.id;
  const runs = useQuery(runsOfQuery(run.environment));
  const checkpoints = useInfiniteQuery(checkpointsQuery(policyRun));
  const saved = checkpoints.data?.pages.flatMap(({ items }) => items).filter(({ removed }) => !removed) ?? [];
  const isOther = policyRun !== run.id;
  const checkpoint = values.checkpoint || (isOther ? (saved[0]?.id ?? '') : '');
  const create = useBranchMutation(run.id, episode.id, createBranch);
  const fields = new Map(asProblem(create.error).fields.map(({ field, message }) => [field, message]));
  const error = (field: (typeof FIELDS)[number], max?: number, min = 1): string | undefined =>
    (max === undefined || !(field in values)
      ? undefined
      : boundsError(values[field as 'horizon'], min, max)) ?? fields.get(field);
  const errors = {
    decision: error('decision', episode.length_steps),
    continuations: error('continuations', MAX_CONTINUATIONS),
    horizon: error('horizon', MAX_HORIZON),
    checkpoint: error('checkpoint'),
    first_action: error('first_action'),
  };
  const isUnknown = create.isError && !FIELDS.some((field) => fields.has(field));
  const edit =
    (name: keyof typeof values) =>
    ({ currentTarget: { value } }: { currentTarget: { value: string } }): void => {
      create.reset();
      setValues((before) => ({ ...before, [name]: value, ...(name === 'run' && { checkpoint: '' }) }));
    };
  // Without one, a policy of the episode's own run would play.
  const lacksCheckpoint = isOther && checkpoint === '';
  const isInvalid = lacksCheckpoint || [errors.decision, errors.continuations, errors.horizon].some(Boolean);
  const others = (runs.data ?? []).filter(({ id }) => id !== run.id);
  return (
    <Modal opened onClose={onClose} title="Branch from here" size="md">
      <form
        noValidate
        style={{ display: 'grid', gap: 16 }}
        onSubmit={(event) => {
          event.preventDefault();
          if (isInvalid) return;
          create.mutate(
            {
              episode: episode.id,
              decision: parseNumber(values.decision) - 1,
              continuations: parseNumber(values.continuations),
              horizon: parseNumber(values.horizon),
              ...(checkpoint && { checkpoint }),
              ...(values.action && { first_action: Number(values.action) }),
            },
            { onSuccess: onCreated },
          );
        }}
      >
        <TextInput
          label="Decision"
          description="Continuations part from the episode before this decision, counted from 1 as in the replay."
          inputMode="numeric"
          value={values.decision}
          error={errors.decision}
          errorProps={{ role: 'alert' }}
          onChange={edit('decision')}
        />
        <TextInput
          label="Continuations"
          data-autofocus
          inputMode="numeric"
          value={values.continuations}
          error={errors.continuations}
          errorProps={{ role: 'alert' }}
          onChange={edit('continuations')}
        />
        <TextInput
          label="Horizon"
          description="Decisions at most; where one is cut off, V of its last state stands for the rest."
          inputMode="numeric"
          value={values.horizon}
          error={errors.horizon}
          errorProps={{ role: 'alert' }}
          onChange={edit('horizon')}
        />
        <NativeSelect
          label="Policy"
          description="Another run must see and act in the environment alike. To go on yourself, press Play from here: your game is then a line of this decision’s fans."
          value={values.run}
          onChange={edit('run')}
          data={[
            { value: '', label: `${run.name} (this run)` },
            ...others.map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        <NativeSelect
          label="Checkpoint"
          value={checkpoint}
          error={
            errors.checkpoint ?? (checkpoints.isSuccess && saved.length === 0 ? 'It has none' : undefined)
          }
          errorProps={{ role: 'alert' }}
          onChange={edit('checkpoint')}
          data={[
            ...(isOther ? [] : [{ value: '', label: 'Nearest to the episode' }]),
            ...saved.map(({ id, agent_steps }) => ({
              value: id,
              label: `${formatInteger(agent_steps)} agent steps`,
            })),
          ]}
        />
        {!continuous && (
          <NativeSelect
            label="First action"
            value={values.action}
            error={errors.first_action}
            errorProps={{ role: 'alert' }}
            onChange={edit('action')}
            data={[
              { value: '', label: 'The policy’s own' },
              ...actionNames.map((name, action) => ({ value: String(action), label: name })),
            ]}
          />
        )}
        {isUnknown && <Problem error={create.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <LoadingButton type="submit" loading={create.isPending} unavailable={isInvalid}>
            Branch
          </LoadingButton>
        </Group>
      </form>
    </Modal>
  );
}
