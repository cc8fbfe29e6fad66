import { NativeSelect, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import { parseNumber } from '@/lib/number';
import { MAX_SEEDS, type Draft } from './draft';
import classes from './launch.module.css';

type Props = {
  draft: Draft;
  problems: ReadonlyMap<string, string>;
  /** Of a fork there is one, whatever its seed. */
  single: boolean;
  onChange: (change: Partial<Draft>) => void;
};

/** What is the same for every algorithm: name, seeds, tags, and where it may run. */
export function RunFields({ draft, problems, single, onChange }: Props) {
  const { data: hosts } = useQuery(hostsQuery);
  const n = parseNumber(draft.nSeeds);
  const first = parseNumber(draft.firstSeed);
  const seeds = n > 1 ? `seeds ${first} to ${first + n - 1}: one run each` : 'one run';
  const error = (...fields: string[]): string | undefined =>
    [...problems].find(([field]) =>
      fields.some((each) => field === each || field.startsWith(`${each}.`)),
    )?.[1];
  return (
    <>
      <section className={`panel ${classes.block}`} aria-label="This run">
        <h2 className="section-title">This run</h2>
        <div className={classes.fields}>
          <TextInput
            label="Name"
            placeholder="made from algorithm, world and seed"
            value={draft.name}
            maxLength={200}
            error={error('name')}
            onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
          />
          {!single && (
            <TextInput
              label="Number of seeds"
              description={seeds}
              inputMode="numeric"
              classNames={{ input: 'num' }}
              value={draft.nSeeds}
              error={error('nSeeds', 'seeds')}
              onChange={({ currentTarget }) => onChange({ nSeeds: currentTarget.value })}
              aria-label={`Number of seeds, 1 to ${MAX_SEEDS}`}
            />
          )}
          <TextInput
            label={n > 1 ? 'First seed' : 'Seed'}
            description="The same seed starts from the same weights and worlds."
            inputMode="numeric"
            classNames={{ input: 'num' }}
            value={draft.firstSeed}
            error={error('seed')}
            onChange={({ currentTarget }) => onChange({ firstSeed: currentTarget.value })}
          />
          <TextInput
            label="Tags"
            description="Separated by commas."
            value={draft.tags}
            error={error('tags')}
            onChange={({ currentTarget }) => onChange({ tags: currentTarget.value })}
          />
          <TextInput
            label="Group"
            description="Runs of one question share a group."
            value={draft.group}
            maxLength={200}
            error={error('group')}
            onChange={({ currentTarget }) => onChange({ group: currentTarget.value })}
          />
          <Textarea
            label="Notes"
            size="xs"
            autosize
            minRows={1}
            maxRows={8}
            value={draft.notes}
            error={error('notes')}
            onChange={({ currentTarget }) => onChange({ notes: currentTarget.value })}
          />
        </div>
      </section>
      <section className={`panel ${classes.block}`} aria-label="Placement">
        <h2 className="section-title">Placement</h2>
        <div className={classes.fields}>
          <NativeSelect
            size="xs"
            label="Queue"
            description="Which hosts may take it."
            data={['cpu', 'gpu']}
            value={draft.queue}
            error={error('queue')}
            onChange={({ currentTarget }) => onChange({ queue: currentTarget.value as Draft['queue'] })}
          />
          <NativeSelect
            size="xs"
            label="Host"
            description="Only this one, or any."
            data={[{ value: '', label: 'any host' }, ...(hosts?.items.map(({ id }) => id) ?? [])]}
            value={draft.host}
            error={error('host')}
            onChange={({ currentTarget }) => onChange({ host: currentTarget.value })}
          />
          <NativeSelect
            size="xs"
            label="Device"
            description="Where the network computes."
            data={['auto', 'cpu', 'cuda']}
            value={draft.device}
            error={error('device')}
            onChange={({ currentTarget }) => onChange({ device: currentTarget.value as Draft['device'] })}
          />
          <TextInput
            label="Priority"
            description="Higher goes first, −100 to 100."
            inputMode="numeric"
            classNames={{ input: 'num' }}
            value={draft.priority}
            error={error('priority')}
            onChange={({ currentTarget }) => onChange({ priority: currentTarget.value })}
          />
        </div>
      </section>
    </>
  );
}
