import { NativeSelect, Textarea, TextInput, type InputWrapperProps } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { hostsQuery } from '@/api/hosts';
import { MAX_PRIORITY, MIN_PRIORITY } from '@/lib/runBounds';
import { ProjectInput } from '@/components/ProjectInput';
import { formatInteger, parseNumber } from '@/lib/format';
import { DEFAULT_PROJECT } from '@/lib/project';
import { nSeedsOf, type Draft } from './draft';
import classes from './launch.module.css';
import { sweepName } from './requests';

type Props = {
  draft: Draft;
  errors: ReadonlyMap<string, string>;
  /** Whether the runs are a sweep's, which chooses their seeds. */
  sweep: boolean;
  /** Whether it is of a host's command, and whether that takes a seed. */
  command?: { has_seed: boolean } | undefined;
  /** The group that the runs get if none is typed; empty for none. */
  proposedGroup: string;
  onChange: (change: Partial<Draft>) => void;
};

/** The help below the input, as with config inputs. */
const ORDER: NonNullable<InputWrapperProps['inputWrapperOrder']> = ['label', 'input', 'error', 'description'];

/** The fields of every run: name, seed, tags, notes and placement. */
export function RunFields({ draft, errors, sweep, command, proposedGroup, onChange }: Props) {
  const { data: hosts } = useQuery(hostsQuery);
  const hostIds = hosts?.items.map(({ id }) => id) ?? [];
  // The host of a copied run may have been removed.
  const isOther = draft.host !== '' && !hostIds.includes(draft.host);
  const n = nSeedsOf(draft);
  const first = parseNumber(draft.firstSeed);
  const error = (...fields: string[]): string | undefined =>
    [...errors].find(([field]) => fields.some((name) => field === name || field.startsWith(`${name}.`)))?.[1];
  return (
    <>
      <section className={`panel ${classes.block}`} aria-label={sweep ? 'This sweep' : 'This run'}>
        <h2 className="section-title">{sweep ? 'This sweep' : 'This run'}</h2>
        <div className={classes.fields}>
          <TextInput
            label="Name"
            placeholder={sweep ? sweepName(draft) : 'generated from the config'}
            value={draft.name}
            error={error('name')}
            onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
          />
          {!sweep && command?.has_seed !== false && (
            <TextInput
              label={n > 1 ? 'First seed' : 'Seed'}
              inputWrapperOrder={ORDER}
              description={
                n === 1
                  ? command
                    ? 'Handed over to the script.'
                    : 'Seeds the initial weights and the environments.'
                  : errors.has('seed')
                    ? 'The other seeds follow consecutively.'
                    : `Seeds ${first} to ${first + n - 1}: one run each.`
              }
              inputMode="numeric"
              classNames={{ input: 'num' }}
              value={draft.firstSeed}
              error={error('seed', 'seeds')}
              onChange={({ currentTarget }) => onChange({ firstSeed: currentTarget.value })}
            />
          )}
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
            description="Use one group per experiment."
            placeholder={proposedGroup}
            value={draft.group}
            error={error('group')}
            onChange={({ currentTarget }) => onChange({ group: currentTarget.value })}
          />
          <ProjectInput
            inputWrapperOrder={ORDER}
            description="What it is filed under in lists."
            placeholder={DEFAULT_PROJECT}
            value={draft.project}
            error={error('project')}
            onChange={(project) => onChange({ project })}
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
            label="Queue"
            inputWrapperOrder={ORDER}
            description="Which hosts may run it."
            data={['cpu', 'gpu']}
            value={draft.queue}
            error={error('queue')}
            onChange={({ currentTarget }) => onChange({ queue: currentTarget.value as Draft['queue'] })}
          />
          <NativeSelect
            label="Host"
            inputWrapperOrder={ORDER}
            description="A specific host, or any."
            data={[
              { value: '', label: 'any host' },
              ...hostIds,
              ...(isOther
                ? [{ value: draft.host, label: hosts ? `${draft.host} (not registered)` : draft.host }]
                : []),
            ]}
            value={draft.host}
            error={error('host')}
            onChange={({ currentTarget }) => onChange({ host: currentTarget.value })}
          />
          {!command && (
            <NativeSelect
              label="Device"
              inputWrapperOrder={ORDER}
              description="Where the network runs."
              data={['auto', 'cpu', 'cuda']}
              value={draft.device}
              error={error('device')}
              onChange={({ currentTarget }) => onChange({ device: currentTarget.value as Draft['device'] })}
            />
          )}
          <TextInput
            label="Priority"
            inputWrapperOrder={ORDER}
            description={`Higher starts first, ${formatInteger(MIN_PRIORITY)} to ${formatInteger(MAX_PRIORITY)}.`}
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
