import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { runQuery, type RunDetail } from '@/api/runs';
import { ButtonLink } from '@/components/links';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionDialog } from '@/components/run/ActionDialog';
import { actionsFor, type Action } from '@/components/run/actions';
import { StateMark } from '@/components/StateMark';
import { Time } from '@/components/Time';
import { DASH, formatCount, formatDuration, formatScore, formatWhole } from '@/lib/format';
import classes from './run.module.css';

type Props = { run: RunDetail; onDeleted: () => void };

/** Where a run stands, and what can be done about it. */
export function RunHeader({ run, onDeleted }: Props) {
  const [asked, setAsked] = useState<{ action: Action; opener: HTMLElement } | null>(null);
  const close = (): void => {
    setAsked(null);
    asked?.opener.focus();
  };
  return (
    <header className={classes.header}>
      <div className="row wrap">
        <h1 className="page-title">{run.name}</h1>
        <StateMark state={run.state} reason={run.state_reason} />
        <span className="muted">
          {run.algorithm} on {run.environment}, seed <span className="num">{run.seed}</span>
          {run.archived && ', archived'}
        </span>
        <Lineage run={run} />
        <span className="grow" />
        <div className={classes.actions}>
          {actionsFor(run).map((each) => (
            <Button
              key={each.id}
              variant="default"
              {...(each.danger ? { className: classes.danger } : {})}
              onClick={({ currentTarget }) => setAsked({ action: each, opener: currentTarget })}
            >
              {each.label}
            </Button>
          ))}
          <ButtonLink variant="default" to="/new" search={{ from: run.id }}>
            Clone
          </ButtonLink>
          {run.agent_steps > 0 && (
            <ButtonLink variant="default" to="/new" search={{ fork: run.id }}>
              Fork
            </ButtonLink>
          )}
        </div>
      </div>
      <dl className={classes.facts}>
        <Fact label="Progress">
          <ProgressBar fraction={run.progress} timeLeft_s={run.time_left_s} label="Progress" />
        </Fact>
        <Fact label="Score" hint="Mean true return of the last 100 training episodes">
          {formatScore(run.score)}
        </Fact>
        <Fact label="Best return">{formatScore(run.best_return)}</Fact>
        <Fact
          label="Agent steps"
          hint={`${formatWhole(run.agent_steps)} agent steps, ${formatWhole(run.frames)} frames`}
        >
          {formatCount(run.agent_steps)}
        </Fact>
        <Fact label="Agent steps/s">{formatCount(run.agent_steps_per_s)}</Fact>
        <Fact label="Episodes">{formatCount(run.episodes)}</Fact>
        <Fact label="Training time">{formatDuration(run.wall_time_s)}</Fact>
        <Fact label="Host">{run.host ?? run.attempts.at(-1)?.host ?? DASH}</Fact>
        <Fact label="Attempt">{run.attempt || DASH}</Fact>
        <Fact label={run.started_at ? 'Started' : 'Asked for'}>
          <Time at={run.started_at ?? run.created_at} />
        </Fact>
      </dl>
      {asked && <ActionDialog run={run} action={asked.action} onClose={close} onDeleted={onDeleted} />}
    </header>
  );
}

/** Where it began, and what began from it. */
function Lineage({ run }: { run: RunDetail }) {
  return (
    <>
      {run.parent_id && <Parent id={run.parent_id} at={run.forked_at_agent_steps} />}
      {run.children.map((child) => (
        <span key={child.id} className="muted">
          forked to{' '}
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
      at <span className="num">{formatCount(at)}</span> agent steps
    </span>
  );
}

function Fact({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <div title={hint}>
      <dt>{label}</dt>
      <dd className="num">{children}</dd>
    </div>
  );
}
