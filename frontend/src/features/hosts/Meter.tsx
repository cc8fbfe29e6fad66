import { useState } from 'react';
import classes from './hosts.module.css';

type Props = {
  label: string;
  value: number | null;
  text: string;
  /** When the value was measured: what came before it is drawn behind. */
  at: string;
};

const KEPT = 60;

/** How much of something is in use, and was since the page was opened. */
export function Meter({ label, value, text, at }: Props) {
  const [past, setPast] = useState<{ at: string; shares: readonly number[] }>({ at: '', shares: [] });
  if (value !== null && past.at !== at) {
    setPast({ at, shares: [...past.shares, Math.min(1, value)].slice(-KEPT) });
  }
  const last = KEPT - 1;
  const points = past.shares.map(
    (share, index) => `${last - (past.shares.length - 1 - index)},${(1 - share) * 20}`,
  );
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
      <svg viewBox={`0 0 ${last} 20`} preserveAspectRatio="none" className={classes.graph} aria-hidden="true">
        <polyline points={points.join(' ')} vectorEffect="non-scaling-stroke" />
      </svg>
      <span className="num">{value === null ? 'not reported' : text}</span>
    </div>
  );
}
