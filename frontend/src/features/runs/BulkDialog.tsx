import { TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { doBulk, tryBulk, type BulkAction } from '@/api/bulk';
import { keys } from '@/api/keys';
import { useRunChange } from '@/api/runs';
import { Confirm } from '@/components/Confirm';
import { Loading, Problem } from '@/components/feedback';
import { formatWhole, plural } from '@/lib/format';

type Words = { label: string; says: (runs: string) => string; danger?: boolean };

export const BULK: Partial<Record<BulkAction, Words>> = {
  stop: {
    label: 'Stop',
    says: (runs) =>
      `Stops ${runs}. One that trains keeps a checkpoint, one that waits leaves the queue; both can be resumed.`,
  },
  resume: {
    label: 'Resume',
    says: (runs) =>
      `Puts ${runs} back into the queue, to go on from the newest checkpoint, or from the beginning without one.`,
  },
  tag: { label: 'Tag', says: (runs) => `Adds to ${runs}:` },
  archive: { label: 'Archive', says: (runs) => `Leaves ${runs} out of the list. Nothing is deleted.` },
  delete: {
    label: 'Delete',
    danger: true,
    says: (runs) =>
      `Deletes ${runs} with curves, logs, episodes, videos and checkpoints. This cannot be undone.`,
  },
};

const SHOWN = 5;

type Props = { action: BulkAction; ids: readonly string[]; onClose: () => void; onDone: () => void };

/** Tells what an action will do to how many, and which it leaves alone and why, before it does it. */
export function BulkDialog({ action, ids, onClose, onDone }: Props) {
  const [typed, setTyped] = useState('');
  const words = BULK[action];
  const tags = typed
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
  const needed = action === 'tag';
  const trial = useQuery({
    queryKey: keys.trial(action, ids),
    queryFn: () => tryBulk(action, ids, needed ? ['tag'] : undefined),
    gcTime: 0,
    staleTime: 0,
  });
  const work = useRunChange(async () => {
    await doBulk(action, ids, needed ? tags : undefined);
    onDone();
  });
  if (!words) return null;
  const refused = trial.data?.items.filter(({ done }) => !done) ?? [];
  const touched = trial.data?.items.filter(({ done }) => done) ?? [];
  const fits = touched.length;
  return (
    <Confirm
      opened
      onClose={onClose}
      title={`${words.label}: ${plural(ids.length, 'selected run')}`}
      action={trial.isPending ? words.label : fits > 0 ? `${words.label} ${plural(fits, 'run')}` : undefined}
      danger={words.danger ?? false}
      disabled={fits === 0 || (needed && tags.length === 0)}
      onConfirm={() => work.mutateAsync(undefined)}
    >
      {trial.isPending && <Loading label="Asking what it would do" lines={2} />}
      {trial.isError && <Problem error={trial.error} />}
      {fits > 0 && (
        <Few says={words.says(plural(fits, 'run'))} lines={touched.map(({ id, name }) => name ?? id)} />
      )}
      {needed && (trial.isPending || fits > 0) && (
        <TextInput
          mt={8}
          label="Tags"
          description="Separated by commas."
          data-autofocus
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      )}
      {refused.length > 0 && (
        <Few
          says={`${fits === 0 ? 'Nothing to do: ' : ''}${plural(refused.length, 'run is left as it is', 'runs are left as they are')}:`}
          lines={refused.map(({ id, name, detail }) => `${name ?? id}: ${detail}`)}
        />
      )}
    </Confirm>
  );
}

/** A sentence about some runs, and the first of them. */
function Few({ says, lines }: { says: string; lines: readonly string[] }) {
  const id = useId();
  return (
    <>
      <p id={id} style={{ margin: '12px 0 4px' }}>
        {says}
      </p>
      <ul aria-labelledby={id} style={{ margin: 0, paddingLeft: 20, overflowWrap: 'anywhere' }}>
        {lines.slice(0, SHOWN).map((line, at) => (
          <li key={at}>{line}</li>
        ))}
        {lines.length > SHOWN && <li>and {formatWhole(lines.length - SHOWN)} more</li>}
      </ul>
    </>
  );
}
