import { NativeSelect, Textarea, TextInput, type InputWrapperProps } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import { parseNumber } from '@/lib/number';
import { nRunsOf, type Draft } from './draft';
import classes from './launch.module.css';

type Props = {
  draft: Draft;
  problems: ReadonlyMap<string, string>;
  onChange: (change: Partial<Draft>) => void;
};

/** The help below the field, as that of the settings. */
const ORDER: NonNullable<InputWrapperProps['inputWrapperOrder']> = ['label', 'input', 'error', 'description'];

/** What is the same for every algorithm: name, seed, tags, and where it may run. */
export function RunFields({ draft, problems, onChange }: Props) {
  const { data: hosts } = useQuery(hostsQuery);
  const n = nRunsOf(draft);
  const first = parseNumber(draft.firstSeed);
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
            placeholder="made of its settings"
            value={draft.name}
            error={error('name')}
            onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
          />
          <TextInput
            label={n > 1 ? 'First seed' : 'Seed'}
            inputWrapperOrder={ORDER}
            description={
              n === 1
                ? 'The same seed starts from the same weights and worlds.'
                : problems.has('seed')
                  ? 'The others count up from it.'
                  : `Seeds ${first} to ${first + n - 1}: one run each.`
            }
            inputMode="numeric"
            classNames={{ input: 'num' }}
            value={draft.firstSeed}
            error={error('seed', 'seeds')}
            onChange={({ currentTarget }) => onChange({ firstSeed: currentTarget.value })}
          />
          <TextInput
            label="Tags"
            inputWrapperOrder={ORDER}
            description="Separated by commas."
            value={draft.tags}
            error={error('tags')}
            onChange={({ currentTarget }) => onChange({ tags: currentTarget.value })}
          />
          <TextInput
            label="Group"
            inputWrapperOrder={ORDER}
            description="Runs of one question share a group."
            value={draft.group}
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
            inputWrapperOrder={ORDER}
            description="Which hosts may take it."
            data={['cpu', 'gpu']}
            value={draft.queue}
            error={error('queue')}
            onChange={({ currentTarget }) => onChange({ queue: currentTarget.value as Draft['queue'] })}
          />
          <NativeSelect
            size="xs"
            label="Host"
            inputWrapperOrder={ORDER}
            description="Only this one, or any."
            data={[{ value: '', label: 'any host' }, ...(hosts?.items.map(({ id }) => id) ?? [])]}
            value={draft.host}
            error={error('host')}
            onChange={({ currentTarget }) => onChange({ host: currentTarget.value })}
          />
          <NativeSelect
            size="xs"
            label="Device"
            inputWrapperOrder={ORDER}
            description="Where the network computes."
            data={['auto', 'cpu', 'cuda']}
            value={draft.device}
            error={error('device')}
            onChange={({ currentTarget }) => onChange({ device: currentTarget.value as Draft['device'] })}
          />
          <TextInput
            label="Priority"
            inputWrapperOrder={ORDER}
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
