import { Anchor } from '@mantine/core';
import { MAX_GROUP, MAX_METRIC, MAX_PRIORITY, MAX_PROJECT, MIN_PRIORITY } from '@/lib/runBounds';
import type { Run } from '@/api/runs';
import { InlineEdit } from '@/components/InlineEdit';
import { projectProblem } from '@/lib/project';
import { Term } from '@/components/Term';
import { DASH, formatInteger } from '@/lib/format';
import { isExternal, runsHere } from '@/lib/run';
import classes from './edit.module.css';
import { Notes } from './Notes';
import { TagEditor } from './TagEditor';
import type { RunEdit } from './useRunEdit';

/** Why a typed priority cannot be saved. */
export function priorityProblem(typed: string): string | null {
  const priority = Number(typed);
  return /^[+-]?\d+$/.test(typed) && priority >= MIN_PRIORITY && priority <= MAX_PRIORITY
    ? null
    : `Enter a whole number from ${formatInteger(MIN_PRIORITY)} to ${formatInteger(MAX_PRIORITY)}.`;
}

type Props = { run: Run; edit: RunEdit; denied: string | undefined };

/** A run's tags, group, project, priority and notes, and what was changed last. */
export function RunDetails({ run, edit, denied }: Props) {
  return (
    <div className={classes.details}>
      <TagEditor
        tags={run.tags}
        archived={run.archived}
        save={(what, tags) => edit.save(what, { tags })}
        denied={denied}
      />
      <span>
        <span className={classes.label}>
          <Term>Group</Term>
        </span>
        <InlineEdit
          field="group"
          label="group"
          value={run.group ?? ''}
          maxLength={MAX_GROUP}
          save={(group, from) =>
            edit.save('Changed group', { group: group || null }, { group: from || null })
          }
          denied={denied}
        >
          {run.group ?? <span className="muted">{DASH}</span>}
        </InlineEdit>
      </span>
      <span title="What it is filed under; runs of all projects can be compared">
        <span className={classes.label}>Project</span>
        <InlineEdit
          field="project"
          label="project"
          value={run.project}
          maxLength={MAX_PROJECT}
          check={(typed) => (typed.trim() === '' ? 'Enter a name.' : projectProblem(typed.trim()))}
          save={(project, from) => edit.save('Changed project', { project }, { project: from })}
          denied={denied}
        >
          {run.project}
        </InlineEdit>
      </span>
      {isExternal(run) && (
        <span title="The metric by which the run is scored; empty for that of a known library">
          <span className={classes.label}>Return metric</span>
          <InlineEdit
            field="return_metric"
            label="return metric"
            value={run.return_metric ?? ''}
            maxLength={MAX_METRIC}
            save={(metric, from) =>
              edit.save(
                'Changed return metric',
                { return_metric: metric || null },
                { return_metric: from || null },
              )
            }
            denied={denied}
          >
            {run.return_metric ?? <span className="muted">{DASH}</span>}
          </InlineEdit>
        </span>
      )}
      {runsHere(run) && (
        <span title="Of the queued runs, those with a higher priority start first">
          <span className={classes.label}>
            <Term>Priority</Term>
          </span>
          <InlineEdit
            field="priority"
            label="priority"
            value={String(run.priority)}
            maxLength={5}
            check={priorityProblem}
            save={(priority, from) =>
              edit.save('Changed priority', { priority: Number(priority) }, { priority: Number(from) })
            }
            denied={denied}
          >
            <span className="num">{run.priority}</span>
          </InlineEdit>
        </span>
      )}
      <Notes
        runId={run.id}
        notes={run.notes}
        save={(notes, from) => edit.save('Changed notes', { notes }, { notes: from })}
        denied={denied}
      />
      <span role="status">
        {edit.saved !== null && (
          <>
            {edit.saved}.{' '}
            <Anchor component="button" type="button" size="sm" onClick={edit.undo}>
              Undo
            </Anchor>
            {edit.problem !== null && <span className={classes.error}> Not undone: {edit.problem}</span>}
          </>
        )}
      </span>
    </div>
  );
}
