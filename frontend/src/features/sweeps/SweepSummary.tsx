import type { ReactNode } from 'react';
import type { SweepDetail } from '@/api/sweeps';
import { settingNames } from '@/components/config/settingTitles';
import { ProgressBar } from '@/components/ProgressBar';
import { Term } from '@/components/Term';
import { formatInteger, formatScore, formatValue, plural } from '@/lib/format';
import { variedSettings } from './configurations';
import classes from './sweeps.module.css';
import { configurationCount, progressOf, runsByState } from './SweepState';

type Props = {
  sweep: SweepDetail;
  /** The titles of the settings by path. */
  titles: ReadonlyMap<string, string>;
};

/** A sweep at a glance: its progress, the configuration with the highest score, and what racing saved. */
export function SweepSummary({ sweep, titles }: Props) {
  const { best, spec, n_planned, n_not_needed } = sweep;
  const names = settingNames(variedSettings(sweep), titles);
  const progress = progressOf(sweep);
  return (
    <dl className={`panel ${classes.summary}`} aria-label="Summary">
      <Fact label="Progress">
        <ProgressBar fraction={progress.fraction} label="Progress" />
        <div className="muted">{progress.text}</div>
      </Fact>
      <Fact label="Runs">
        {runsByState(sweep)}
        <div className="muted">
          at most {formatInteger(spec.max_seeds)} seeds of each configuration
          {spec.distinct_seeds && ', of its own'}
        </div>
      </Fact>
      <Fact label="Highest interquartile mean">
        {best ? (
          <>
            <span className="num">
              {Object.entries(best.settings)
                .map(([path, value]) => `${names.get(path) ?? path} ${formatValue(value)}`)
                .join(', ')}
            </span>
            <div className="muted">
              <span className="num">{formatScore(best.iqm)}</span>
              {spec.racing && `; ${othersOf(sweep)}`}
            </div>
          </>
        ) : (
          <span className="muted">no score yet</span>
        )}
      </Fact>
      <Fact label="Configurations">{configurationCount(sweep)}</Fact>
      <Fact label="Saved by racing">
        {!spec.racing ? (
          <span className="muted">no racing: each configuration gets all seeds</span>
        ) : (
          <>
            {formatInteger(n_not_needed)} of {formatInteger(n_planned)} seeds not needed
            <div className="muted">
              {Number((100 * spec.racing.confidence).toFixed(2))} % confidence, from{' '}
              {formatInteger(spec.racing.initial_seeds)} seeds on
            </div>
          </>
        )}
      </Fact>
    </dl>
  );
}

/** What the race has shown of the other configurations. */
function othersOf({ configurations }: SweepDetail): string {
  const n = configurations.filter(({ eliminated }) => eliminated === null).length - 1;
  return n <= 0 ? 'all others are eliminated' : `not shown to be better than ${plural(n, 'other')}`;
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>
        <Term>{label}</Term>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
