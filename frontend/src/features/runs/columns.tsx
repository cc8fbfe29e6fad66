import { Tooltip } from '@mantine/core';
import { IconCloud } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { STATISTICS, type MetricSummary, type RunField, type Statistic } from '@/api/runFields';
import type { Run } from '@/api/runs';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { workspaceSearch } from '@/components/run/search';
import { RunBadge } from '@/components/run/StateBadge';
import { Name, RelativeTime, Score } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import { queryOfTag, runsHere, stepsOf } from '@/lib/run';
import { defined } from '@/lib/search';
import { DASH, formatInteger, formatRate } from '@/lib/format';
import { type LineStyle, SymbolMark } from '@/components/chart/lineStyles';
import { searchOfStyle } from '@/components/chart/seriesStyles';
import classes from './runs.module.css';
import { sparkPath } from './sparklines';

/** What the cells of a run show beside the run itself. */
export type RowData = {
  /** What the run is called in the list; and with its own name, for a tooltip and for screen readers. */
  name: string;
  label: string;
  spark: readonly number[] | undefined;
  metrics: ReadonlyMap<string, MetricSummary> | undefined;
  /** Of a selected run, as Compare draws it: the number of its style, and its look once that is known. */
  lineStyle?: number | undefined;
  look?: LineStyle | undefined;
};

export type Column = {
  id: string;
  title: string;
  /** What the title does not say. */
  hint?: string;
  /** The service's field for sorting. */
  sort?: string;
  /** Numbers are first sorted largest first, text alphabetically. */
  largestFirst?: boolean;
  width: string;
  right?: boolean;
  /** The metric of which the cells show a statistic. */
  metric?: string;
  cell: (run: Run, data: RowData) => ReactNode;
};

/** A column's first sort order. */
export const initialSort = (by: string, { largestFirst }: Column): string => (largestFirst ? `-${by}` : by);

const SPARK = { width: 44, height: 20 };

/** The last point of a path. */
const endOf = (path: string): number[] =>
  path
    .slice(path.lastIndexOf('L') + 1)
    .split(' ')
    .map(Number);

/** A sparkline of the learning curve, of a selected run in its style. */
function Spark({
  values = [],
  look,
}: {
  values: readonly number[] | undefined;
  look: LineStyle | undefined;
}) {
  const path = sparkPath(values, SPARK.width, SPARK.height);
  const [x = 0, y = 0] = endOf(path);
  return (
    <svg
      width={SPARK.width}
      height={SPARK.height}
      viewBox={`-1 -1 ${SPARK.width + 2} ${SPARK.height + 2}`}
      aria-hidden="true"
    >
      <path d={path} fill="none" stroke={look?.colour ?? 'var(--muted)'} strokeWidth={look ? 2 : 1.25} />
      {look && path && <SymbolMark {...look} x={x - 4} y={Math.min(Math.max(y, 4), SPARK.height - 4)} />}
    </svg>
  );
}

/** In place of the host of an external run. */
function Elsewhere() {
  return (
    <span role="img" aria-label="elsewhere" title="External run: trained elsewhere">
      <IconCloud size={14} stroke={1.75} aria-hidden="true" style={{ display: 'block' }} />
    </span>
  );
}

export const COLUMNS: readonly Column[] = [
  {
    id: 'state',
    title: 'State',
    sort: 'state',
    width: '80px',
    cell: (run) => <RunBadge run={run} />,
  },
  {
    id: 'name',
    title: 'Name',
    sort: 'name',
    width: 'minmax(164px, 8fr)',
    cell: (run, { name, label, lineStyle }) => (
      <Link
        to="/runs/$runId"
        params={{ runId: run.id }}
        search={searchOfStyle(lineStyle)}
        tabIndex={-1}
        aria-label={label}
      >
        <Name name={name} title={run.name} />
      </Link>
    ),
  },
  {
    id: 'algorithm',
    title: 'Algorithm',
    sort: 'algorithm',
    width: '84px',
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
    width: 'minmax(96px, 2fr)',
    cell: (run) => (
      <span className="ellipsis" title={run.environment}>
        {shortEnvironmentName(run.environment)}
      </span>
    ),
  },
  {
    id: 'progress',
    title: 'Progress',
    sort: 'agent_steps',
    largestFirst: true,
    width: '108px',
    cell: (run, { label }) => (
      <ProgressBar
        fraction={run.progress}
        timeLeft_s={run.time_left_s}
        label={`Progress of ${label}`}
        compact
      />
    ),
  },
  {
    id: 'score',
    title: 'Score',
    hint: 'Mean true return of the last 100 training episodes',
    sort: 'score',
    largestFirst: true,
    width: '64px',
    right: true,
    cell: (run) => <Score value={run.score} early={run.score_is_early} />,
  },
  {
    id: 'curve',
    title: 'Curve',
    width: '44px',
    cell: (_, { spark, look }) => <Spark values={spark} look={look} />,
  },
  {
    id: 'best',
    title: 'Best',
    hint: 'Highest true return of any training episode',
    sort: 'best_return',
    largestFirst: true,
    width: '64px',
    right: true,
    cell: (run) => <Score value={run.best_return} />,
  },
  {
    id: 'rate',
    title: 'Agent steps/s',
    hint: 'Iterations/s of a run that counts iterations',
    sort: 'agent_steps_per_s',
    largestFirst: true,
    width: '92px',
    right: true,
    cell: (run) => (
      <span className="num" title={`${formatInteger(run.agent_steps)} ${stepsOf(run)} so far`}>
        {formatRate(run.agent_steps_per_s)}
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
        {run.host ?? (runsHere(run) ? DASH : <Elsewhere />)}
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
    cell: (run) => <RelativeTime at={run.created_at} short />,
  },
  {
    id: 'tags',
    title: 'Tags',
    width: 'minmax(36px, 1fr)',
    cell: (run) => (
      <Tooltip label={run.tags.join(', ')} disabled={run.tags.length === 0}>
        <span className={classes.tags}>
          {run.tags[0] !== undefined && (
            <Link
              to="/"
              // The view of the list stays as it is.
              search={(before) => defined({ ...workspaceSearch(before), q: queryOfTag(run.tags[0] ?? '') })}
              className="ellipsis"
              tabIndex={-1}
              aria-label={`Runs with tag ${run.tags[0]}`}
            >
              {run.tags[0]}
            </Link>
          )}
          {run.tags.length > 1 && <span className="muted">+{run.tags.length - 1}</span>}
        </span>
      </Tooltip>
    ),
  },
  {
    id: 'actions',
    title: '',
    width: '24px',
    cell: (run, { label }) => <ActionMenu run={run} label={label} tabIndex={-1} />,
  },
];

/** The columns that cannot be hidden. */
export const FIXED: ReadonlySet<string> = new Set(['state', 'name', 'actions']);

const SPEC_SCALARS: ReadonlySet<string> = new Set(['device', 'annealing_agent_steps']);
const EXTRA_WIDTH = '96px';

/** The value of a setting, whose own name may have dots in an external run. */
function ofSpec(run: Run, path: string): unknown {
  const dot = path.indexOf('.');
  if (dot === -1) return run.spec[path];
  const section = run.spec[path.slice(0, dot)] as Record<string, unknown> | null | undefined;
  return section?.[path.slice(dot + 1)];
}

const shownSetting = (value: unknown): string =>
  value === null || value === undefined
    ? DASH
    : typeof value === 'number'
      ? formatSetting(value)
      : typeof value === 'string'
        ? value
        : JSON.stringify(value);

const formatSetting = (value: number): string =>
  Number.isInteger(value) ? formatInteger(value) : String(value);

/** A metric's name and statistic from a column's id, such as `loss/value.mean`. */
export function metricColumn(id: string): { metric: string; statistic: Statistic } | null {
  if (!id.includes('/')) return null;
  const statistic = STATISTICS.find((name) => id.endsWith(`.${name}`));
  return statistic
    ? { metric: id.slice(0, -statistic.length - 1), statistic }
    : { metric: id, statistic: 'last' };
}

/** The column of a setting or of a metric's statistic; undefined for the name of neither. */
export function extraColumn(id: string, fields: readonly RunField[]): Column | undefined {
  const shown = metricColumn(id);
  if (shown) {
    const { metric, statistic } = shown;
    const title = fields.find(({ name }) => name === metric)?.title ?? metric;
    return {
      id,
      title: `${title} (${statistic})`,
      sort: id,
      largestFirst: true,
      width: EXTRA_WIDTH,
      right: true,
      metric,
      cell: (_, { metrics }) => (
        <span className="num">{formatMetric(metrics?.get(metric)?.[statistic] ?? null)}</span>
      ),
    };
  }
  if (!id.includes('.') && !SPEC_SCALARS.has(id)) return undefined;
  const field = fields.find(({ name }) => name === id);
  return {
    id,
    title: field?.title ?? id.slice(id.lastIndexOf('.') + 1),
    sort: id,
    width: EXTRA_WIDTH,
    right: field?.kind === 'number',
    cell: (run) => {
      const text = shownSetting(ofSpec(run, id));
      return (
        <span className="num ellipsis" title={text}>
          {text}
        </span>
      );
    },
  };
}

/** Four significant digits: losses and learning rates are small, memory is large. */
const formatMetric = (value: number | null): string =>
  value === null
    ? DASH
    : value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e6)
      ? value.toExponential(2)
      : String(Number(value.toPrecision(4)));
