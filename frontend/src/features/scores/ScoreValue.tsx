import type { MouseEvent } from 'react';
import type { ScoreCell, ScoreColumn } from '@/api/scores';
import { served } from '@/lib/base';
import {
  DASH,
  formatCount,
  formatDuration,
  formatInteger,
  formatPublished,
  formatScore,
  plural,
} from '@/lib/format';
import classes from './scores.module.css';

const MAX_COMPARED = 100;

/** Follows a link of the page without a router's link, of which a thousand would make the table slow. */
export type Follow = (event: MouseEvent<HTMLAnchorElement>) => void;

type Props = {
  cell: ScoreCell;
  column: ScoreColumn;
  title: string;
  /** Of every score of the row. */
  protocol: string;
  isNormalised: boolean;
  follow: Follow;
};

/** A score with its seeds, budget and interval; of runs of this installation, a link to them. */
export function ScoreValue({ cell, column, title, protocol, isNormalised, follow }: Props) {
  const text = valueText(cell, column, isNormalised);
  if (column.source !== 'ours') return <span title={cell.rule}>{text}</span>;
  const description = describe(cell, isNormalised);
  const shown = cell.comparable ? text : `≠ ${text}`;
  return (
    <>
      <a
        href={runsAddress(cell, protocol)}
        onClick={follow}
        title={description}
        aria-label={`${column.title}, ${title}: ${text}. ${description}`}
        className={cell.comparable ? undefined : classes.other}
      >
        {shown}
      </a>
      <div className={classes.small}>{interval(cell, isNormalised)}</div>
      <div className={classes.small}>
        <span className="nowrap">{plural(cell.runs.length, 'seed')},</span>{' '}
        <span className="nowrap">{formatCount(cell.max_agent_steps)}</span>
      </div>
    </>
  );
}

/** A score, or its share of the way from random play to a person. */
function valueText(cell: ScoreCell, column: ScoreColumn, isNormalised: boolean): string {
  if (isNormalised) return percent(cell.normalised);
  if (column.source === 'published' && cell.value !== null) return formatPublished(cell.value);
  return formatScore(cell.value);
}

export const percent = (value: number | null | undefined): string =>
  value == null ? DASH : `${formatScore(value)}\u00a0%`;

function interval(cell: ScoreCell, isNormalised: boolean): string {
  const [low, high] = isNormalised ? [cell.normalised_low, cell.normalised_high] : [cell.low, cell.high];
  return low === null || high === null ? '' : `${formatScore(low)} to ${formatScore(high)}`;
}

/** The rule, the budget, and what the score cannot be compared with. */
function describe(cell: ScoreCell, isNormalised: boolean): string {
  const { min_agent_steps: least, max_agent_steps: most, n_configurations: n } = cell;
  const range = interval(cell, isNormalised);
  const steps = least === most ? formatInteger(most) : `${formatInteger(least)} to ${formatInteger(most)}`;
  const parts = [
    cell.rule,
    n > 1 ? `the best of ${n} configurations` : '',
    range && `95 % CI ${range}`,
    `evaluated at ${steps} agent steps on ${plural(cell.n_episodes ?? 0, 'episode')}`,
    `training time ${formatDuration(cell.wall_time_s)}`,
    cell.comparable
      ? ''
      : 'observed in another way than published scores (crop, observation size or other settings): neither normalised nor in the foot',
  ];
  return `${parts.filter(Boolean).join('; ')}.`;
}

function runsAddress({ runs }: ScoreCell, protocol: string): string {
  if (runs.length === 1) return served(`/runs/${runs[0] ?? ''}`);
  const compared = runs.slice(0, MAX_COMPARED).join(',');
  const search = new URLSearchParams({
    list: 'beside',
    runs: compared,
    score: 'evaluation',
    at: 'end',
    protocol,
  });
  return served(`/?${search}`);
}
