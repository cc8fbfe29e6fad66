import { Term } from '@/components/Term';
import { formatCoarseDuration } from '@/lib/format';
import classes from './hosts.module.css';

type Props = {
  label: string;
  /** The fraction in use, from 0 to 1. */
  value: number | null;
  /** What is known of the use, in words; null if nothing is. */
  text: string | null;
  /** The fractions of the latest readings, oldest first. */
  history?: readonly number[] | undefined;
  /** How long ago the first of them was. */
  duration_s?: number | null | undefined;
};

const MAX_HISTORY = 60;

/** The current and recent use of a resource. */
export function Meter({ label, value, text, history, duration_s }: Props) {
  const points = history?.map(
    (fraction, index) => `${MAX_HISTORY - history.length + index},${(1 - fraction) * 20}`,
  );
  const reading = text ?? 'not reported';
  const period = duration_s ? `last ${formatCoarseDuration(duration_s)}` : 'recent';
  return (
    <div className={classes.meter}>
      <span className="muted">
        <Term>{label}</Term>
      </span>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round((value ?? 0) * 100)}
        aria-valuetext={reading}
        className={classes.bar}
      >
        <span style={{ transform: `scaleX(${Math.min(1, value ?? 0)})` }} />
      </span>
      {/* Its height is kept without a history, so that all meters of a row align. */}
      {points ? (
        <svg
          viewBox={`0 0 ${MAX_HISTORY - 1} 20`}
          preserveAspectRatio="none"
          className={classes.graph}
          aria-hidden="true"
        >
          <title>{`${period}, from 0 to 100%`}</title>
          <polyline points={points.join(' ')} vectorEffect="non-scaling-stroke" />
        </svg>
      ) : (
        <span className={classes.graph} aria-hidden="true" />
      )}
      <span className={classes.reading}>
        <span className="num">{reading}</span>
        {points && <span className={classes.scale}>{period}, 0–100%</span>}
      </span>
    </div>
  );
}
