import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { MAX_NAME } from '@/api/runBounds';
import { runQuery, type RunDetail } from '@/api/runs';
import { EPISODE_RETURN } from '@/api/series';
import { ButtonLink } from '@/components/controls';
import { InlineEdit } from '@/components/InlineEdit';
import { PermittedButton, useDenied } from '@/components/permission';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionDialog } from '@/components/run/ActionDialog';
import { actionsFor, type Action } from '@/components/run/actions';
import { StateBadge } from '@/components/run/StateBadge';
import { Term } from '@/components/Term';
import { RelativeTime } from '@/components/text';
import { DASH, formatCount, formatDuration, formatScore, formatInteger } from '@/lib/format';
import { ELSEWHERE, isExternal, seedOf } from '@/lib/run';
import { ExportMenu } from '@/components/run/ExportMenu';
import classes from './run.module.css';
import { RunDetails } from './RunDetails';
import { useRunEdit } from './useRunEdit';

type Props = { run: RunDetail; onDeleted: () => void };

/** A run's name, state, lineage, actions and key figures. */
export function RunHeader({ run, onDeleted }: Props) {
  const [dialog, setDialog] = useState<{ action: Action; opener: HTMLElement } | null>(null);
  const edit = useRunEdit(run);
  const denied = useDenied();
  const external = isExternal(run);
  const iterates = run.step_unit === 'iterations';
  const noClone = denied ?? (external ? ELSEWHERE.clone : undefined);
  const noFork = denied ?? (external ? ELSEWHERE.fork : undefined);
  const close = (): void => {
    setDialog(null);
    dialog?.opener.focus();
  };
  return (
    <header className={classes.header}>
      <div className="row wrap">
        <InlineEdit
          field="name"
          label="name"
          value={run.name}
          maxLength={MAX_NAME}
          check={(typed) => (typed === '' ? 'Enter a name.' : null)}
          save={(name) => edit.save('Changed name', { name })}
          denied={denied}
        >
          <h1 className="page-title">{run.name}</h1>
        </InlineEdit>
        <StateBadge state={run.state} reason={run.state_reason} />
        <span className="muted">
          {run.algorithm} on {run.environment}
          {seedOf(run) !== undefined && (
            <>
              , seed <span className="num">{run.seed}</span>
            </>
          )}
          {external && ', external run'}
          {run.archived && ', archived'}
        </span>
        <Lineage run={run} />
        <span className="grow" />
        <div className={classes.actions}>
          {actionsFor(run).map((each) => (
            <PermittedButton
              key={each.id}
              denied={denied ?? each.unavailable}
              variant="default"
              {...(each.danger ? { className: classes.danger } : {})}
              onClick={({ currentTarget }) => setDialog({ action: each, opener: currentTarget })}
            >
              {each.label}
            </PermittedButton>
          ))}
          {noClone === undefined ? (
            <ButtonLink variant="default" to="/new" search={{ from: run.id }}>
              Clone
            </ButtonLink>
          ) : (
            <PermittedButton variant="default" denied={noClone}>
              Clone
            </PermittedButton>
          )}
          {run.agent_steps > 0 &&
            (noFork === undefined ? (
              <ButtonLink variant="default" to="/new" search={{ fork: run.id }}>
                Fork
              </ButtonLink>
            ) : (
              <PermittedButton variant="default" denied={noFork}>
                Fork
              </PermittedButton>
            ))}
          {run.agent_steps > 0 && <ExportMenu target={{ ids: [run.id] }} />}
        </div>
      </div>
      <dl className={classes.facts}>
        <Fact label="Progress">
          <ProgressBar fraction={run.progress} timeLeft_s={run.time_left_s} label="Progress" />
        </Fact>
        <Fact
          label="Score"
          hint={
            run.return_metric && run.return_metric !== EPISODE_RETURN
              ? `By its metric ${run.return_metric}`
              : 'Mean true return of the last 100 training episodes'
          }
        >
          {formatScore(run.score)}
        </Fact>
        <Fact
          label="Best return"
          hint="Highest true return of any training episode; only some episodes are recorded, so the best recorded one may have less"
        >
          {formatScore(run.best_return)}
        </Fact>
        <Fact
          label={iterates ? 'Iterations' : 'Agent steps'}
          hint={
            iterates
              ? `${formatInteger(run.agent_steps)} iterations; its script has not told the agent steps of one`
              : `${formatInteger(run.agent_steps)} agent steps, ${formatInteger(run.frames)} frames`
          }
        >
          {formatCount(run.agent_steps)}
        </Fact>
        <Fact label={iterates ? 'Iterations/s' : 'Agent steps/s'}>{formatCount(run.agent_steps_per_s)}</Fact>
        <Fact label="Episodes">{formatCount(run.episodes)}</Fact>
        <Fact label="Training time">{formatDuration(run.wall_time_s)}</Fact>
        <Fact label="Host">{external ? 'elsewhere' : (run.host ?? run.attempts.at(-1)?.host ?? DASH)}</Fact>
        {!external && <Fact label="Attempt">{run.attempt || DASH}</Fact>}
        <Fact label={run.started_at ? 'Started' : 'Queued'}>
          <RelativeTime at={run.started_at ?? run.created_at} />
        </Fact>
      </dl>
      <RunDetails run={run} edit={edit} denied={denied} />
      {dialog && <ActionDialog run={run} action={dialog.action} onClose={close} onDeleted={onDeleted} />}
    </header>
  );
}

/** The run it was forked from, and its own forks. */
function Lineage({ run }: { run: RunDetail }) {
  return (
    <>
      {run.parent_id && <Parent id={run.parent_id} at={run.forked_at_agent_steps} />}
      {run.children.map((child) => (
        <span key={child.id} className="muted">
          forked as{' '}
          <Link to="/runs/$runId" params={{ runId: child.id }}>
            {child.name}
          </Link>
        </span>
      ))}
    </>
  );
}

function Parent({ id, at }: { id: string; at: number | null }) {
  const { data } = useQuery(runQuery(id));
  return (
    <span className="muted">
      forked from{' '}
      <Link to="/runs/$runId" params={{ runId: id }}>
        {data?.name ?? 'another run'}
      </Link>{' '}
      at agent step <span className="num">{formatCount(at)}</span>
    </span>
  );
}

function Fact({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <div title={hint}>
      <dt>
        <Term>{label}</Term>
      </dt>
      <dd className="num">{children}</dd>
    </div>
  );
}
