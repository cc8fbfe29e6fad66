import { formatDuration, formatCoarseDuration } from '@/lib/format';
import classes from './ProgressBar.module.css';

type Props = {
  /** From 0 to 1; null for a run without a known end. */
  fraction: number | null;
  timeLeft_s?: number | null | undefined;
  label: string;
  /** For table cells, whose column has a heading. */
  compact?: boolean;
};

/** A progress bar with its percentage and the time left. */
export function ProgressBar({ fraction, timeLeft_s, label, compact = false }: Props) {
  if (fraction === null) return <span className="muted">–</span>;
  const percent = Math.min(100, Math.floor(fraction * 100));
  return (
    <span className={classes.progress} data-compact={compact || undefined}>
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
      {timeLeft_s != null && (
        <span className="num muted" title={`${formatDuration(timeLeft_s)} of training left`}>
          {compact ? formatCoarseDuration(timeLeft_s) : `${formatDuration(timeLeft_s)} left`}
        </span>
      )}
    </span>
  );
}
