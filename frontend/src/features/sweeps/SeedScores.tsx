import { Link } from '@tanstack/react-router';
import type { Configuration } from '@/api/sweeps';
import { formatScore } from '@/lib/format';
import { scoresOf } from './configurations';
import classes from './sweeps.module.css';

type Props = {
  configuration: Configuration;
  /** The scores at the left and the right end. */
  from: number;
  to: number;
};

/** The scores of a configuration's seeds on a scale, each a link to its run; the line is the median's interval. */
export function SeedScores({ configuration, from, to }: Props) {
  const { name, runs, iqm, median } = configuration;
  const share = (value: number): number =>
    to > from ? Math.min(1, Math.max(0, (value - from) / (to - from))) : 0.5;
  const at = (value: number): string => `${(share(value) * 100).toFixed(2)}%`;
  if (scoresOf(configuration).length === 0) return <span className="muted">no score yet</span>;
  const [low, high] = [median?.low ?? null, median?.high ?? to];
  return (
    <span className={classes.seeds}>
      {low !== null && (
        <span
          className={classes.interval}
          aria-hidden="true"
          style={{ left: at(low), width: `${((share(high) - share(low)) * 100).toFixed(2)}%` }}
        />
      )}
      {iqm !== null && <span className={classes.iqm} aria-hidden="true" style={{ left: at(iqm) }} />}
      {runs.map(({ run, seed, score }) => {
        if (score === null) return null;
        const title = `Seed ${seed}: ${formatScore(score)}`;
        if (run === null)
          return <span key={seed} className={classes.seed} title={title} style={{ left: at(score) }} />;
        return (
          <Link
            key={seed}
            to="/runs/$runId"
            params={{ runId: run }}
            preload={false}
            className={classes.seed}
            data-placed-by-value
            style={{ left: at(score) }}
            title={title}
            aria-label={`${name}, seed ${seed}: score ${formatScore(score)}`}
          />
        );
      })}
    </span>
  );
}
