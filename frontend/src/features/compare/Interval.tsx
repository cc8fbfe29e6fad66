import type { Estimate } from '@/api/comparisons';
import classes from './compare.module.css';

type Props = {
  estimate: Estimate;
  /** What the left and the right end stand for. */
  from: number;
  to: number;
  colour: string;
  /** A line to hold it against. */
  mark?: number;
};

/** An estimate as a dot in its interval, on a scale that others share. The numbers stand beside it. */
export function Interval({ estimate: { value, low, high }, from, to, colour, mark }: Props) {
  if (value === null) return null;
  const at = (number: number): string =>
    `${(to > from ? ((number - from) / (to - from)) * 100 : 50).toFixed(2)}%`;
  return (
    <svg className={classes.interval} aria-hidden="true">
      <line x1="0" x2="100%" y1="50%" y2="50%" stroke="var(--line)" />
      {mark !== undefined && (
        <line x1={at(mark)} x2={at(mark)} y1="0" y2="100%" stroke="var(--line-strong)" />
      )}
      {low !== null && high !== null && (
        <line x1={at(low)} x2={at(high)} y1="50%" y2="50%" stroke={colour} strokeWidth="3" />
      )}
      <circle cx={at(value)} cy="50%" r="4" fill={colour} stroke="var(--panel)" strokeWidth="1.5" />
    </svg>
  );
}
