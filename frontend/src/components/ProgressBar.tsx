import { formatDuration, formatRough } from '@/lib/format';
import classes from './ProgressBar.module.css';

type Props = {
  /** From 0 to 1; null where the end is not known. */
  fraction: number | null;
  timeLeft_s?: number | null | undefined;
  label: string;
  /** In a table, whose heading says what it is. */
  compact?: boolean;
};

/** How far, and how long still. */
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
          {compact ? formatRough(timeLeft_s) : `${formatDuration(timeLeft_s)} left`}
        </span>
      )}
    </span>
  );
}
