import { Button, Group, Modal, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { asProblem, fieldError } from '@/api/problem';
import { MAX_CONFIGURATIONS, MAX_SEEDS } from '@/lib/runBounds';
import { sweepActions, useSweepMutation, type Sweep, type SweepExtension } from '@/api/sweeps';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { formatInteger, parseNumber, plural } from '@/lib/format';

const wholeNumber = (typed: string, min: number, max: number): string | null => {
  const value = parseNumber(typed);
  return Number.isInteger(value) && value >= min && value <= max
    ? null
    : `Enter a whole number from ${formatInteger(min)} to ${formatInteger(max)}.`;
};

/** Adds seeds, and configurations of a sweep that is no grid. */
export function ExtendDialog({ sweep, onClose }: { sweep: Sweep; onClose: () => void }) {
  const { max_seeds, n_configurations = null, sampler } = sweep.spec;
  const canGrow = sampler !== 'grid' && n_configurations !== null;
  const [seeds, setSeeds] = useState(String(max_seeds));
  const [further, setFurther] = useState('0');
  const extend = useSweepMutation(sweep.id, (body: SweepExtension) => sweepActions.extend(sweep.id, body));
  const seedsError = wholeNumber(seeds, max_seeds, MAX_SEEDS);
  const furtherError = canGrow ? wholeNumber(further, 0, MAX_CONFIGURATIONS - n_configurations) : null;
  const nSeeds = parseNumber(seeds);
  const nFurther = canGrow ? parseNumber(further) : 0;
  const isValid = seedsError === null && furtherError === null;
  const isChanged = nSeeds !== max_seeds || nFurther > 0;
  const serverError = (field: string): string | null =>
    asProblem(extend.error).fields.some((problem) => problem.field === field)
      ? fieldError(extend.error, field)
      : null;
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (!isValid || !isChanged) return;
    const body = {
      ...(nSeeds === max_seeds ? {} : { max_seeds: nSeeds }),
      ...(nFurther > 0 && canGrow ? { n_configurations: n_configurations + nFurther } : {}),
    };
    extend.mutate(body, { onSuccess: onClose });
  };
  return (
    <Modal opened onClose={onClose} title={`Extend: ${sweep.name}`} size="md">
      <form onSubmit={submit} noValidate style={{ display: 'grid', gap: 16 }}>
        <TextInput
          label="Seeds of each configuration, at most"
          description={`Now ${formatInteger(max_seeds)}. Eliminated configurations get no further seeds.`}
          inputMode="numeric"
          autoComplete="off"
          classNames={{ input: 'num' }}
          value={seeds}
          error={seedsError ?? serverError('max_seeds')}
          onChange={({ currentTarget }) => setSeeds(currentTarget.value)}
          data-autofocus
        />
        {canGrow && (
          <TextInput
            label={sampler === 'random' ? 'Further random configurations' : 'Further configurations'}
            description={`In addition to the ${plural(n_configurations, 'configuration')} so far.`}
            inputMode="numeric"
            autoComplete="off"
            classNames={{ input: 'num' }}
            value={further}
            error={furtherError ?? serverError('n_configurations')}
            onChange={({ currentTarget }) => setFurther(currentTarget.value)}
          />
        )}
        {extend.isError && <Problem error={extend.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <LoadingButton
            type="submit"
            loading={extend.isPending}
            unavailable={!isValid || !isChanged}
            title={isChanged ? undefined : 'Enter a higher number first.'}
          >
            Extend
          </LoadingButton>
        </Group>
      </form>
    </Modal>
  );
}
