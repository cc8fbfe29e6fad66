import { SegmentedControl, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { keys } from '@/api/keys';
import {
  applyBulk,
  canUndo,
  previewBulk,
  undoBulk,
  useRunMutation,
  type BulkAction,
  type BulkResult,
  type BulkTarget,
} from '@/api/runs';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { Loading, Problem } from '@/components/feedback';
import { ProjectInput } from '@/components/ProjectInput';
import { showToast } from '@/components/toasts';
import { formatInteger, parseNumber, plural } from '@/lib/format';
import { DEFAULT_PROJECT, projectProblem } from '@/lib/project';

type ActionText = {
  label: string;
  /** How the report of the action begins. */
  reported: string;
  description: (runs: string) => string;
  danger?: boolean;
};

export const BULK_ACTIONS: Partial<Record<BulkAction, ActionText>> = {
  stop: {
    label: 'Stop',
    reported: 'Stopping',
    description: (runs) =>
      `Stops ${runs}. Training runs save a checkpoint, queued runs leave the queue; all can be resumed.`,
  },
  resume: {
    label: 'Resume',
    reported: 'Queued',
    description: (runs) =>
      `Puts ${runs} back in the queue to continue from the latest checkpoint, or from the start if there is none.`,
  },
  tag: {
    label: 'Tag',
    reported: 'Changed the tags of',
    description: (runs) => `Changes the tags of ${runs}.`,
  },
  prioritise: {
    label: 'Priority',
    reported: 'Changed the priority of',
    description: (runs) => `Changes the priority of ${runs}. Runs with a higher priority start first.`,
  },
  move: {
    label: 'Project',
    reported: 'Moved',
    description: (runs) => `Files ${runs} under a project.`,
  },
  archive: {
    label: 'Archive',
    reported: 'Archived',
    description: (runs) => `Archives ${runs}: hidden from the list, nothing is deleted.`,
  },
  unarchive: {
    label: 'Unarchive',
    reported: 'Unarchived',
    description: (runs) => `Unarchives ${runs}: shown in the list again.`,
  },
  delete: {
    label: 'Delete',
    reported: 'Deleted',
    danger: true,
    description: (runs) =>
      `Deletes ${runs}, including curves, logs, episodes, videos and checkpoints. Studies lose those that they count. You can undo this for an hour, under “Recently deleted”.`,
  },
};

const MAX_PRIORITY = 100;
const MAX_LISTED = 5;
/** With more runs, there is no preview. */
const MAX_PREVIEWED = 1000;

type Props = {
  action: BulkAction;
  target: BulkTarget;
  /** The number of runs. */
  n: number;
  onClose: () => void;
  onDone: () => void;
};

/** Shows what an action would do to which runs, and why it would skip others; then runs it. */
export function BulkDialog({ action, target, n, onClose, onDone }: Props) {
  const client = useQueryClient();
  const [typed, setTyped] = useState('');
  const [removes, setRemoves] = useState(false);
  const text = BULK_ACTIONS[action];
  const tags = typed
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
  const needsTags = action === 'tag';
  const needsPriority = action === 'prioritise';
  const priority = parseNumber(typed);
  const isPriority = Number.isInteger(priority) && Math.abs(priority) <= MAX_PRIORITY;
  const needsProject = action === 'move';
  const project = typed.trim();
  const details = needsTags
    ? { tags }
    : needsPriority
      ? { priority }
      : needsProject
        ? { project }
        : undefined;
  const applied: BulkAction = needsTags && removes ? 'untag' : action;
  const previewed = n <= MAX_PREVIEWED;
  const preview = useQuery({
    queryKey: keys.bulkPreview(action, target),
    queryFn: () =>
      previewBulk(
        action,
        target,
        // Placeholders: which runs are left out does not depend on them.
        needsTags
          ? { tags: ['tag'] }
          : needsPriority
            ? { priority: 0 }
            : needsProject
              ? { project: DEFAULT_PROJECT }
              : undefined,
      ),
    gcTime: 0,
    staleTime: 0,
    enabled: previewed,
  });
  const work = useRunMutation(async () => {
    const result = await applyBulk(applied, target, details);
    report(applied, result, async () => {
      await undoBulk(applied, result);
      await client.invalidateQueries({ queryKey: keys.allRuns() });
    });
    if (needsProject) void client.invalidateQueries({ queryKey: keys.projects() });
    onDone();
  });
  if (!text) return null;
  const skipped = preview.data?.items.filter(({ done }) => !done) ?? [];
  const affected = preview.data?.items.filter(({ done }) => done) ?? [];
  const nAffected = previewed ? affected.length : n;
  const isPending = previewed && preview.isPending;
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={`${text.label}: ${plural(n, 'selected run')}`}
      action={
        isPending ? text.label : nAffected > 0 ? `${text.label} ${plural(nAffected, 'run')}` : undefined
      }
      danger={text.danger ?? false}
      disabled={
        nAffected === 0 ||
        (needsTags && tags.length === 0) ||
        (needsPriority && !isPriority) ||
        (needsProject && (project === '' || projectProblem(project) !== null))
      }
      onConfirm={() => work.mutateAsync(undefined)}
    >
      {isPending && <Loading label="Checking the selected runs" lines={2} />}
      {preview.isError && <Problem error={preview.error} />}
      {!previewed && (
        <p>
          {text.description(plural(n, 'run'))} Runs that the action cannot be applied to are left unchanged.
        </p>
      )}
      {previewed && nAffected > 0 && (
        <RunList
          text={text.description(plural(nAffected, 'run'))}
          lines={affected.map(({ id, name }) => name ?? id)}
        />
      )}
      {needsTags && (isPending || nAffected > 0) && (
        <SegmentedControl
          mt={8}
          size="xs"
          aria-label="Change of the tags"
          value={removes ? 'remove' : 'add'}
          data={[
            { value: 'add', label: 'Add' },
            { value: 'remove', label: 'Remove' },
          ]}
          onChange={(value) => setRemoves(value === 'remove')}
        />
      )}
      {needsTags && (isPending || nAffected > 0) && (
        <TextInput
          mt={8}
          label="Tags"
          description="Separated by commas."
          data-autofocus
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      )}
      {needsProject && (isPending || nAffected > 0) && (
        <ProjectInput
          mt={8}
          description="One that exists, or a new one."
          data-autofocus
          value={typed}
          error={projectProblem(project)}
          onChange={setTyped}
        />
      )}
      {needsPriority && (isPending || nAffected > 0) && (
        <TextInput
          mt={8}
          label="Priority"
          description={`From −${MAX_PRIORITY} to ${MAX_PRIORITY}; 0 by default.`}
          inputMode="numeric"
          data-autofocus
          value={typed}
          error={typed !== '' && !isPriority && `A whole number from −${MAX_PRIORITY} to ${MAX_PRIORITY}.`}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      )}
      {skipped.length > 0 && (
        <RunList
          text={`${nAffected === 0 ? 'Nothing to do: ' : ''}${plural(skipped.length, 'run is left unchanged', 'runs are left unchanged')}:`}
          lines={skipped.map(({ id, name, detail }) => `${name ?? id}: ${detail}`)}
        />
      )}
    </ConfirmDialog>
  );
}

/** Reports what was done, with a way to undo it. */
function report(action: BulkAction, result: BulkResult, undo: () => Promise<unknown>): void {
  if (result.n_done === 0) return;
  const past = BULK_ACTIONS[action === 'untag' ? 'tag' : action]?.reported ?? 'Changed';
  const skipped = result.n_refused > 0 ? `; ${plural(result.n_refused, 'run')} left unchanged` : '';
  showToast(`${past} ${plural(result.n_done, 'run')}${skipped}.`, canUndo(action) ? undo : undefined);
}

/** A sentence about some runs and a list of the first of them. */
function RunList({ text, lines }: { text: string; lines: readonly string[] }) {
  const id = useId();
  return (
    <>
      <p id={id} style={{ margin: '12px 0 4px' }}>
        {text}
      </p>
      <ul aria-labelledby={id} style={{ margin: 0, paddingLeft: 20, overflowWrap: 'anywhere' }}>
        {lines.slice(0, MAX_LISTED).map((line, index) => (
          <li key={index}>{line}</li>
        ))}
        {lines.length > MAX_LISTED && <li>and {formatInteger(lines.length - MAX_LISTED)} more</li>}
      </ul>
    </>
  );
}
