import { Button, Skeleton } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { asProblem } from '@/api/problem';
import { ButtonLink } from './controls';
import classes from './feedback.module.css';

/** A placeholder of about the final height, so that the layout does not shift. */
export function Loading({ label, lines = 4 }: { label: string; lines?: number }) {
  return (
    <div role="status" aria-label={`${label}…`} className={classes.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={20} radius={2} />
      ))}
    </div>
  );
}

/** An error: what happened, its details, and a retry button where a retry can help. */
export function Problem({
  error,
  onRetry,
  invalid,
}: {
  error: unknown;
  onRetry?: () => void;
  /** The title for invalid input. */
  invalid?: string;
}) {
  const problem = asProblem(error);
  return (
    <div role="alert" className={classes.problem}>
      <IconAlertTriangle size={20} aria-hidden="true" />
      <div className="grow">
        <strong>{(problem.status === 422 && invalid) || problem.title}</strong>
        {problem.detail && <div className={classes.detail}>{problem.detail}</div>}
        {problem.fields
          .filter(({ message }) => !problem.detail.includes(message))
          .map(({ field, message }) => (
            <div key={field + message}>
              <span className="num">{field}</span>: {message}
            </div>
          ))}
      </div>
      {/* Invalid input would only be rejected again. */}
      {onRetry && problem.status !== 422 && (
        <Button variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

type PageProblemProps = {
  error: unknown;
  onRetry: () => void;
  /** The list that a missing resource would be in. */
  back?: '/' | '/sweeps' | '/papers' | '/play';
};

const BACK = {
  '/': 'Back to runs',
  '/sweeps': 'Back to sweeps',
  '/papers': 'Back to papers',
  '/play': 'Back to play',
} as const;

/** An error in place of a whole page; for a missing resource, the same as for an unknown address. */
export function PageProblem({ error, onRetry, back = '/' }: PageProblemProps) {
  const { status, detail } = asProblem(error);
  if (status !== 404) return <Problem error={error} onRetry={onRetry} />;
  return (
    <div role="alert">
      <Missing detail={detail} back={back} />
    </div>
  );
}

/** The heading of a page that is not shown: that it is not found, or else its usual title. */
export const titleOf = (error: unknown, usual: string): string =>
  error && asProblem(error).status === 404 ? 'Not found' : usual;

const NOTHING = 'There is nothing at this address';

/** What stands at an address without a page, or of something that was deleted. */
export function Missing({ detail = NOTHING, back = '/' }: { detail?: string; back?: keyof typeof BACK }) {
  const isKnown = detail !== '' && detail !== NOTHING;
  return (
    <Empty action={<ButtonLink to={back}>{BACK[back]}</ButtonLink>}>
      {isKnown
        ? `${detail.charAt(0).toUpperCase()}${detail.slice(1).replace(/\.$/, '')}.`
        : `${NOTHING}. It may be mistyped, or what it showed was deleted.`}
    </Empty>
  );
}

/** An empty state: why there is nothing, and what to do about it. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className={classes.empty}>
      <p>{children}</p>
      {action}
    </div>
  );
}
