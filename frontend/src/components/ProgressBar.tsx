import { formatDuration } from '@/lib/format';
import classes from './ProgressBar.module.css';

type Props = {
  /** From 0 to 1; null where the end is not known. */
  fraction: number | null;
  timeLeft_s?: number | null | undefined;
  label: string;
};

/** How far, and how long still. */
export function ProgressBar({ fraction, timeLeft_s, label }: Props) {
  if (fraction === null) return <span className="muted">–</span>;
  const percent = Math.min(100, Math.floor(fraction * 100));
  return (
    <span className={classes.progress}>
      <span
        role="progressbar"
        aria-label={label}
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        className={classes.bar}
      >
        <span style={{ transform: `scaleX(${Math.min(1, fraction)})` }} />
      </span>
      <span className="num">{percent}%</span>
      {timeLeft_s != null && <span className="num muted">{formatDuration(timeLeft_s)} left</span>}
    </span>
  );
}
