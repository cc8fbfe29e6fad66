import classes from './hosts.module.css';

type Props = {
  label: string;
  /** The share in use, from 0 to 1. */
  value: number | null;
  text: string;
  /** The shares of the last minutes, oldest first. */
  past?: readonly number[] | undefined;
};

const KEPT = 60;

/** How much of something is in use, and was. */
export function Meter({ label, value, text, past }: Props) {
  const points = past?.map((share, index) => `${KEPT - past.length + index},${(1 - share) * 20}`);
  return (
    <div className={classes.meter}>
      <span className="muted">{label}</span>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round((value ?? 0) * 100)}
        aria-valuetext={text}
        className={classes.bar}
      >
        <span style={{ transform: `scaleX(${Math.min(1, value ?? 0)})` }} />
      </span>
      {points && (
        <svg
          viewBox={`0 0 ${KEPT - 1} 20`}
          preserveAspectRatio="none"
          className={classes.graph}
          aria-hidden="true"
        >
          <polyline points={points.join(' ')} vectorEffect="non-scaling-stroke" />
        </svg>
      )}
      <span className="num">{value === null ? 'not reported' : text}</span>
    </div>
  );
}
