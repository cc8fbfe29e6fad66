import { Button, Group, Modal, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type SubmitEvent } from 'react';
import { newKey } from '@/api/client';
import { keys } from '@/api/keys';
import { MAX_NAME } from '@/lib/runBounds';
import { draftQuery, startDraft, type StudyDraft, type StudySource } from '@/api/studies';
import { LoadingButton } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { formatInteger, plural } from '@/lib/format';
import classes from './papers.module.css';
import { StudyCost } from './StudyCost';

type Props = { source: StudySource; onClose: () => void; onStarted: (study: string) => void };

/** Names a study created from runs, and shows which of its runs exist and which would be started. */
export default function SaveAsStudyDialog({ source, onClose, onStarted }: Props) {
  const client = useQueryClient();
  const [typed, setTyped] = useState<string | null>(null);
  const [key] = useState(newKey);
  const draft = useQuery(draftQuery(source));
  const start = useMutation({
    mutationFn: (made: StudyDraft) => startDraft(made, name, key),
    onSuccess: async ({ id }) => {
      onStarted(id);
      await client.invalidateQueries({ queryKey: keys.papers() });
    },
  });
  const name = (typed ?? draft.data?.study.name ?? '').trim();
  const nNew = draft.data ? draft.data.estimate.n_runs - draft.data.estimate.n_reused : 0;
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (draft.data && name !== '') start.mutate(draft.data);
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={nNew > 0 ? `Save as study and start ${plural(nNew, 'run')}` : 'Save as study'}
      size="lg"
    >
      <form onSubmit={submit} noValidate style={{ display: 'grid', gap: 16 }}>
        {draft.error && <Problem error={draft.error} onRetry={() => void draft.refetch()} />}
        {draft.isPending && <Loading label="Finding the runs that exist" lines={6} />}
        {draft.data && (
          <>
            <TextInput
              label="Name"
              description="Its new runs are in a group of this name."
              maxLength={MAX_NAME}
              autoComplete="off"
              value={typed ?? draft.data.study.name}
              error={name === '' ? 'Enter a name.' : null}
              onChange={({ currentTarget }) => setTyped(currentTarget.value)}
              data-autofocus
            />
            <Contents draft={draft.data} />
            <StudyCost estimate={draft.data.estimate} />
            <Unused draft={draft.data} />
          </>
        )}
        {start.error && <Problem error={start.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <LoadingButton type="submit" loading={start.isPending} unavailable={!draft.data || name === ''}>
            {nNew > 0 ? `Start ${plural(nNew, 'run')}` : 'Save'}
          </LoadingButton>
        </Group>
      </form>
    </Modal>
  );
}

/** What is trained: each arm on each environment with each seed. */
function Contents({ draft: { study } }: { draft: StudyDraft }) {
  const { arms, environments, draws } = study;
  const what = Object.keys(draws.space ?? {}).length > 0 ? 'random draw' : 'seed';
  const sizes = [
    plural(arms.length, 'arm'),
    plural(environments.length, 'environment'),
    plural(draws.n, what),
  ];
  return (
    <section aria-label="Arms and environments" style={{ display: 'grid', gap: 4 }}>
      <h3 className="section-title">{sizes.join(' × ')}</h3>
      <ul className={`${classes.list} ${classes.short}`} tabIndex={0} aria-label="Arms">
        {arms.map(({ label }) => (
          <li key={label}>{label}</li>
        ))}
      </ul>
      <div className="muted">{environments.join(', ')}</div>
    </section>
  );
}

/** The chosen runs that are no part of the study, each with its reason. */
function Unused({ draft: { unused, n_runs } }: { draft: StudyDraft }) {
  if (unused.length === 0) return null;
  return (
    <section aria-label="Runs that are not used" style={{ display: 'grid', gap: 4 }}>
      <h3 className="section-title">
        {`${formatInteger(unused.length)} of the ${plural(n_runs, 'run')} ${unused.length === 1 ? 'is' : 'are'} not used`}
      </h3>
      <ul className={`${classes.list} ${classes.short}`} tabIndex={0} aria-label="Reasons">
        {unused.map(({ run, name, reason }) => (
          <li key={run}>
            {name}: <span className="muted">{reason}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
