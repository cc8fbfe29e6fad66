import { Tooltip } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Run } from '@/api/runs';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { RunName } from '@/components/RunName';
import { StateMark } from '@/components/StateMark';
import { Time } from '@/components/Time';
import { DASH, formatCount, formatScore, formatWhole } from '@/lib/format';
import { shortWorld } from '@/lib/world';
import { sparkPath } from './sparklines';

export type Column = {
  id: string;
  title: string;
  /** What the service calls it when it sorts by it. */
  sort?: string;
  /** Numbers first ask for the largest, words for the first. */
  largestFirst?: boolean;
  width: string;
  right?: boolean;
  cell: (run: Run, spark: readonly number[] | undefined) => ReactNode;
};

/** How a column sorts at first. */
export const firstSort = (by: string, { largestFirst }: Column): string => (largestFirst ? `-${by}` : by);

const SPARK = { width: 44, height: 20 };

/** A learning curve the size of a word. */
function Spark({ values }: { values: readonly number[] | undefined }) {
  return (
    <svg
      width={SPARK.width}
      height={SPARK.height}
      viewBox={`-1 -1 ${SPARK.width + 2} ${SPARK.height + 2}`}
      aria-hidden="true"
    >
      <path
        d={sparkPath(values ?? [], SPARK.width, SPARK.height)}
        fill="none"
        stroke="var(--muted)"
        strokeWidth="1.25"
      />
    </svg>
  );
}

export const COLUMNS: readonly Column[] = [
  {
    id: 'state',
    title: 'State',
    sort: 'state',
    width: '80px',
    cell: (run) => <StateMark state={run.state} reason={run.state_reason} />,
  },
  {
    id: 'name',
    title: 'Name',
    sort: 'name',
    width: 'minmax(176px, 8fr)',
    cell: (run) => (
      <Link to="/runs/$runId" params={{ runId: run.id }} aria-label={run.name} title={run.name}>
        <RunName name={run.name} />
      </Link>
    ),
  },
  {
    id: 'algorithm',
    title: 'Algorithm',
    sort: 'algorithm',
    width: '64px',
    cell: (run) => (
      <span className="ellipsis" title={run.algorithm}>
        {run.algorithm}
      </span>
    ),
  },
  {
    id: 'environment',
    title: 'Environment',
    sort: 'environment',
    width: '80px',
    cell: (run) => (
      <span className="ellipsis" title={run.environment}>
        {shortWorld(run.environment)}
      </span>
    ),
  },
  {
    id: 'progress',
    title: 'Progress',
    sort: 'agent_steps',
    largestFirst: true,
    width: '112px',
    cell: (run) => (
      <ProgressBar
        fraction={run.progress}
        timeLeft_s={run.time_left_s}
        label={`Progress of ${run.name}`}
        compact
      />
    ),
  },
  {
    id: 'score',
    title: 'Score',
    sort: 'score',
    largestFirst: true,
    width: '56px',
    right: true,
    cell: (run) => <span className="num">{formatScore(run.score)}</span>,
  },
  {
    id: 'curve',
    title: 'Curve',
    width: '44px',
    cell: (_, spark) => <Spark values={spark} />,
  },
  {
    id: 'best',
    title: 'Best',
    sort: 'best_return',
    largestFirst: true,
    width: '52px',
    right: true,
    cell: (run) => <span className="num">{formatScore(run.best_return)}</span>,
  },
  {
    id: 'rate',
    title: 'Agent steps/s',
    sort: 'agent_steps_per_s',
    largestFirst: true,
    width: '86px',
    right: true,
    cell: (run) => (
      <span className="num" title={`${formatWhole(run.agent_steps)} agent steps so far`}>
        {formatCount(run.agent_steps_per_s)}
      </span>
    ),
  },
  {
    id: 'host',
    title: 'Host',
    sort: 'host',
    width: 'minmax(40px, 1fr)',
    cell: (run) => (
      <span className="ellipsis" title={run.host ?? undefined}>
        {run.host ?? DASH}
      </span>
    ),
  },
  {
    id: 'age',
    title: 'Age',
    sort: 'created_at',
    largestFirst: true,
    width: '52px',
    right: true,
    cell: (run) => <Time at={run.created_at} plain />,
  },
  {
    id: 'tags',
    title: 'Tags',
    width: 'minmax(36px, 1fr)',
    cell: (run) => (
      <Tooltip label={run.tags.join(', ')} disabled={run.tags.length === 0}>
        <span className="ellipsis">{run.tags.join(', ')}</span>
      </Tooltip>
    ),
  },
  { id: 'actions', title: '', width: '24px', cell: (run) => <ActionMenu run={run} /> },
];
