import { Button, Skeleton } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { asProblem } from '@/api/problem';
import { ButtonLink } from '@/components/links';
import classes from './feedback.module.css';

/** Room for what is on its way, of about its size, so that nothing jumps. */
export function Loading({ label, lines = 4 }: { label: string; lines?: number }) {
  return (
    <div role="status" aria-label={`${label}…`} className={classes.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={20} radius={2} />
      ))}
    </div>
  );
}

/** What happened, what it means, and a way on. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = asProblem(error);
  return (
    <div role="alert" className={classes.problem}>
      <IconAlertTriangle size={20} aria-hidden="true" />
      <div className="grow">
        <strong>{problem.title}</strong>
        {problem.detail && <div className={classes.detail}>{problem.detail}</div>}
        {problem.fields
          .filter(({ message }) => !problem.detail.includes(message))
          .map(({ field, message }) => (
            <div key={field + message}>
              <span className="num">{field}</span>: {message}
            </div>
          ))}
      </div>
      {/* What is wrong in itself is refused again. */}
      {onRetry && problem.status !== 422 && (
        <Button variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** What kept a whole page from being shown; from what is not there at all, a way to what is. */
export function PageProblem({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const missing = asProblem(error).status === 404;
  return (
    <>
      <Problem error={error} {...(missing ? {} : { onRetry })} />
      {missing && (
        <ButtonLink to="/" variant="default" mt={12} style={{ justifySelf: 'start' }}>
          To the runs
        </ButtonLink>
      )}
    </>
  );
}

/** Nothing here yet: why, and what to do about it. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className={classes.empty}>
      <p>{children}</p>
      {action}
    </div>
  );
}
