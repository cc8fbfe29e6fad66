import { ExportButton } from '@/components/chart/export/ExportFigure';
import type { ExportSource } from '@/components/chart/export/source';
import { Term } from '@/components/Term';
import { formatNumber } from '@/lib/format';
import classes from './replay.module.css';
import type { Trace } from './trace';

type Props = {
  trace: Trace;
  returns: Float64Array | undefined;
  errors: Float64Array | undefined;
  step: number;
  /** Only what the compact timeline draws. */
  compact?: boolean;
  hasValues: boolean;
  exported: ExportSource | undefined;
};

/** The values at the current step. Their columns are as wide as the longest number, so that they stay in place. */
export function TimelineHead({ trace, returns, errors, step, compact = false, hasValues, exported }: Props) {
  const steps = trace.rewards.length;
  const value = trace.actionValues ? 'max Q' : 'value V';
  const digits = String(steps).length;
  return (
    <div className={classes.timelineHead} data-compact={compact || undefined}>
      <span>
        agent step{' '}
        <b className="num" style={{ minWidth: `${digits}ch`, textAlign: 'right' }}>
          {step + 1}
        </b>{' '}
        of <span className="num">{steps}</span>
      </span>
      <span>
        <i style={{ background: 'var(--running)' }} /> reward{' '}
        <b className="num">{formatNumber(trace.rewards[step])}</b>
      </span>
      {hasValues && (
        <span>
          <i style={{ background: 'var(--accent)' }} /> <Term>{value}</Term>{' '}
          <b className="num">{formatNumber(trace.values[step])}</b>
        </span>
      )}
      {returns && (
        <span>
          <i style={{ background: 'var(--muted)' }} /> <Term>discounted return</Term>{' '}
          <b className="num">{formatNumber(returns[step])}</b>
        </span>
      )}
      {errors && (
        <span>
          <i style={{ background: 'var(--failed)' }} /> <Term>value error</Term>{' '}
          <b className="num">{formatNumber(errors[step])}</b>
        </span>
      )}
      {trace.lives.some((lives) => lives > 0) && (
        <span>
          <i style={{ background: 'var(--lost)' }} /> life lost
        </span>
      )}
      {exported && (
        <span className={classes.exportButton}>
          <ExportButton source={exported} />
        </span>
      )}
    </div>
  );
}
