import { Button, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { asProblem } from '@/api/problem';
import {
  MAX_EVALUATION_EPISODES,
  MAX_EVALUATION_SEED,
  MIN_EVALUATION_EPISODES,
  MIN_EVALUATION_SEED,
} from '@/lib/runBounds';
import { checkpointsQuery, protocolsQuery, requestEvaluation, type Protocol } from '@/api/runResources';
import { useRunMutation, type Run } from '@/api/runs';
import { Loading, Problem } from '@/components/feedback';
import { formatInteger, parseNumber } from '@/lib/format';

type Props = {
  run: Pick<Run, 'id' | 'name'>;
  /** The id of the checkpoint that is selected first; by default the latest. */
  checkpoint?: string;
  onClose: () => void;
};

const SEED = '0';

/** The error of a number field that contains no whole number between the bounds. */
function wholeNumberError(raw: string, min: number, max: number): string | undefined {
  const value = parseNumber(raw);
  return Number.isInteger(value) && value >= min && value <= max
    ? undefined
    : `A whole number from ${formatInteger(min)} to ${formatInteger(max)}`;
}

/** The description of the selected protocol, and why others are not available. */
function protocolHelp(protocols: readonly Protocol[], selected: string): string {
  const description = protocols.find(({ id }) => id === selected)?.description ?? '';
  const reasons = protocols
    .filter(({ id, unavailable }) => unavailable !== null && !id.endsWith('_greedy'))
    .map(({ title, unavailable }) => `Not available: ${title}, because ${unavailable ?? ''}.`);
  return [description, ...reasons].join(' ');
}

/** Requests an evaluation: which checkpoint, under which protocol, of how many episodes, from which seed. */
export function EvaluateDialog({ run, checkpoint, onClose }: Props) {
  const checkpoints = useInfiniteQuery(checkpointsQuery(run.id));
  const protocols = useQuery(protocolsQuery(run.id));
  const [chosen, setChosen] = useState<{ checkpoint?: string; protocol?: string }>({});
  const [typed, setEpisodes] = useState<string | null>(null);
  const [seed, setSeed] = useState(SEED);
  const saved = checkpoints.data?.pages.flatMap(({ items }) => items) ?? [];
  const values = {
    checkpoint: chosen.checkpoint ?? checkpoint ?? saved[0]?.id ?? '',
    protocol: chosen.protocol ?? protocols.data?.default ?? '',
  };
  const protocol = protocols.data?.items.find(({ id }) => id === values.protocol);
  const episodes = typed ?? String(protocol?.n_episodes ?? '');
  const request = useRunMutation(() =>
    requestEvaluation(run.id, { ...values, episodes: parseNumber(episodes), seed: parseNumber(seed) }),
  );
  const problem = asProblem(request.error);
  const serverErrors = new Map(problem.fields.map(({ field, message }) => [field, message]));
  const errors = {
    checkpoint: serverErrors.get('checkpoint'),
    protocol: serverErrors.get('protocol'),
    episodes:
      wholeNumberError(episodes, MIN_EVALUATION_EPISODES, MAX_EVALUATION_EPISODES) ??
      serverErrors.get('episodes'),
    seed: wholeNumberError(seed, MIN_EVALUATION_SEED, MAX_EVALUATION_SEED) ?? serverErrors.get('seed'),
  };
  const otherError = request.isError && !Object.keys(errors).some((field) => serverErrors.has(field));
  const loadError = checkpoints.error ?? protocols.error;
  const edit = (): void => request.reset();
  return (
    <Modal opened onClose={onClose} title={`Evaluate ${run.name}`} size="md">
      {loadError && <Problem error={loadError} />}
      {!loadError && (!checkpoints.data || !protocols.data) && <Loading label="Loading the protocols" />}
      {checkpoints.data && protocols.data && (
        <form
          style={{ display: 'grid', gap: 16 }}
          onSubmit={(event) => {
            event.preventDefault();
            request.mutate(undefined, { onSuccess: onClose });
          }}
        >
          <NativeSelect
            label="Checkpoint"
            error={errors.checkpoint}
            errorProps={{ role: 'alert' }}
            value={values.checkpoint}
            onChange={({ currentTarget: { value } }) => {
              edit();
              setChosen((before) => ({ ...before, checkpoint: value }));
            }}
            data={saved.map(({ id, agent_steps, file }) => ({
              value: id,
              label: `${formatInteger(agent_steps)} agent steps (${file})`,
            }))}
          />
          <NativeSelect
            label="Protocol"
            description={protocolHelp(protocols.data.items, values.protocol)}
            inputWrapperOrder={['label', 'input', 'error', 'description']}
            error={errors.protocol}
            errorProps={{ role: 'alert' }}
            value={values.protocol}
            onChange={({ currentTarget: { value } }) => {
              edit();
              setChosen((before) => ({ ...before, protocol: value }));
            }}
            data={protocols.data.items.map(({ id, title, unavailable }) => ({
              value: id,
              label: [
                title,
                id === protocols.data.default && ' (default)',
                unavailable !== null && ' (not available)',
              ]
                .filter(Boolean)
                .join(''),
              disabled: unavailable !== null,
            }))}
          />
          <TextInput
            size="xs"
            label="Episodes"
            inputMode="numeric"
            error={errors.episodes}
            errorProps={{ role: 'alert' }}
            value={episodes}
            onChange={({ currentTarget: { value } }) => {
              edit();
              setEpisodes(value);
            }}
          />
          <TextInput
            size="xs"
            label="Seed of the starts"
            inputMode="numeric"
            error={errors.seed}
            errorProps={{ role: 'alert' }}
            value={seed}
            onChange={({ currentTarget: { value } }) => {
              edit();
              setSeed(value);
            }}
          />
          {otherError && <Problem error={request.error} />}
          <div className="row" style={{ justifyContent: 'flex-end' }}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={request.isPending}
              disabled={Object.values(errors).some((error) => error !== undefined)}
            >
              Evaluate
            </Button>
          </div>
        </form>
      )}
    </Modal>
  );
}
