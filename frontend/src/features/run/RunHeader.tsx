import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { MAX_NAME } from '@/lib/runBounds';
import { runQuery, type RunDetail } from '@/api/runs';
import { InlineEdit } from '@/components/InlineEdit';
import { useDenied } from '@/components/permission';
import { StateBadge } from '@/components/run/StateBadge';
import { formatCount } from '@/lib/format';
import { isExternal, seedOf } from '@/lib/run';
import { KeyFigures } from './KeyFigures';
import classes from './run.module.css';
import { RunActions } from './RunActions';
import { RunDetails } from './RunDetails';
import { useRunEdit } from './useRunEdit';

type Props = { run: RunDetail; onDeleted: () => void };

/** A run's name, state and actions in one line, its lineage, and its key figures. */
export function RunHeader({ run, onDeleted }: Props) {
  const edit = useRunEdit(run);
  const denied = useDenied();
  const external = isExternal(run);
  return (
    <header className={classes.header}>
      <div className={classes.line}>
        <InlineEdit
          field="name"
          label="name"
          value={run.name}
          maxLength={MAX_NAME}
          check={(typed) => (typed === '' ? 'Enter a name.' : null)}
          save={(name, from) => edit.save('Changed name', { name }, { name: from })}
          denied={denied}
        >
          <h1 className={`page-title ${classes.name}`} title={run.name}>
            {run.name}
          </h1>
        </InlineEdit>
        <StateBadge state={run.state} reason={run.state_reason} />
        <span className={`muted ${classes.about}`}>
          {run.algorithm} on {run.environment}
          {seedOf(run) !== undefined && (
            <>
              , seed <span className="num">{run.seed}</span>
            </>
          )}
          {external && (run.command ? `, command ${run.command}` : ', external run')}
          {run.archived && ', archived'}
          {run.demo && ', demo'}
        </span>
        <RunActions run={run} denied={denied} onDeleted={onDeleted} />
      </div>
      <Lineage run={run} />
      <KeyFigures run={run} />
      <RunDetails run={run} edit={edit} denied={denied} />
    </header>
  );
}

/** The run it was forked from, and its own forks. */
function Lineage({ run }: { run: RunDetail }) {
  if (!run.parent_id && run.children.length === 0) return null;
  return (
    <p className={`muted ${classes.lineage}`}>
      {run.parent_id && <Parent id={run.parent_id} at={run.forked_at_agent_steps} />}
      {run.children.map((child, at) => (
        <span key={child.id}>
          {at > 0 ? ', ' : run.parent_id ? '; forked as ' : 'Forked as '}
          <Link to="/runs/$runId" params={{ runId: child.id }}>
            {child.name}
          </Link>
        </span>
      ))}
    </p>
  );
}

function Parent({ id, at }: { id: string; at: number | null }) {
  const { data } = useQuery(runQuery(id));
  return (
    <span>
      Forked from{' '}
      <Link to="/runs/$runId" params={{ runId: id }}>
        {data?.name ?? 'another run'}
      </Link>{' '}
      at agent step <span className="num">{formatCount(at)}</span>
    </span>
  );
}
