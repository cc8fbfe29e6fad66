import { Link } from '@tanstack/react-router';
import { useInfiniteQuery } from '@tanstack/react-query';
import { cellsQuery, type StudyDetail } from '@/api/studies';
import { ShowMore } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { ProgressBar } from '@/components/ProgressBar';
import { StateBadge } from '@/components/run/StateBadge';
import { ScrollPanel } from '@/components/ScrollPanel';
import { shortEnvironmentName } from '@/lib/environments';
import { formatCoarseDuration, formatCount, formatInteger, formatScore, formatValue } from '@/lib/format';
import { STATES } from '@/lib/run';
import classes from './papers.module.css';
import { isQueued, partsOf, progressText, runsText, wordOf } from './studyState';

type Props = { study: StudyDetail };

/** How far a study is, and what it has cost. */
export function StudyFacts({ study }: Props) {
  const { n, finished, failed } = partsOf(study.runs);
  return (
    <dl className={`panel ${classes.cost}`} style={{ padding: '12px 16px' }} aria-label="Summary">
      <div>
        <dt>Progress</dt>
        <dd>
          <ProgressBar fraction={n === 0 ? 0 : finished / n} label="Progress" />
          <div className="muted">
            {progressText(study)}
            {failed > 0 && `, ${formatInteger(failed)} not finished`}
          </div>
        </dd>
      </div>
      <div>
        <dt>Time left</dt>
        <dd>
          {study.state !== 'running'
            ? 'none'
            : study.time_left_s === null
              ? 'not known yet'
              : `about ${formatCoarseDuration(study.time_left_s)}${isQueued(study) ? ' once its runs start' : ''}`}
        </dd>
      </div>
      <div>
        <dt>Cost so far</dt>
        <dd>
          <span className="num">{formatCount(study.agent_steps)}</span> agent steps
          <div className="muted">{formatCoarseDuration(study.wall_time_s)} of training</div>
        </dd>
      </div>
      <div>
        <dt>Reused runs</dt>
        <dd className="num">{formatInteger(study.n_reused)}</dd>
      </div>
    </dl>
  );
}

/** Environments as rows, arms as columns: how many runs have finished, and their mean score. */
export function StudyProgress({ study }: Props) {
  const { arms, environments } = study.spec;
  const progressByCell = new Map(
    study.progress.map((progress) => [`${progress.arm} ${progress.environment}`, progress]),
  );
  return (
    <section style={{ display: 'grid', gap: 8 }}>
      <h2 className="section-title">Progress</h2>
      <ScrollPanel label="Progress by arm and environment">
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">Environment</th>
              {arms.map(({ label }) => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {environments.map((environment) => (
              <tr key={environment}>
                <th scope="row" className="nowrap">
                  {shortEnvironmentName(environment)}
                </th>
                {arms.map(({ label }) => {
                  const progress = progressByCell.get(`${label} ${environment}`);
                  return (
                    <td key={label}>
                      {progress && (
                        <ArmProgress
                          runs={progress.runs}
                          score={progress.score}
                          isRunning={study.state === 'running'}
                        />
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
    </section>
  );
}

type ArmProps = { runs: Readonly<Record<string, number>>; score: number | null; isRunning: boolean };

function ArmProgress({ runs, score, isRunning }: ArmProps) {
  const { n, finished, training, failed } = partsOf(runs);
  const share = (count: number): string => `${(100 * count) / Math.max(1, n)}%`;
  return (
    <div title={runsText(runs, isRunning)}>
      <span className={classes.bar} aria-hidden="true">
        <span data-part="finished" style={{ width: share(finished) }} />
        <span data-part="training" style={{ width: share(training) }} />
        <span data-part="failed" style={{ width: share(failed) }} />
      </span>
      <span className="nowrap">
        <span className="num">
          {formatInteger(finished)} / {formatInteger(n)}
        </span>
        {failed > 0 && <span className="muted"> {formatInteger(failed)} not finished</span>}
        {score !== null && (
          <span className="muted">
            {' '}
            training score <span className="num">{formatScore(score)}</span>
          </span>
        )}
      </span>
    </div>
  );
}

/** The runs of a study by cell. */
export function StudyRuns({ study }: Props) {
  const query = useInfiniteQuery(cellsQuery(study));
  const { data, error, refetch } = query;
  const cells = data?.pages.flatMap(({ items }) => items);
  const paths = Object.keys(study.spec.draws.space ?? {});
  return (
    <section style={{ display: 'grid', gap: 8 }}>
      <h2 className="section-title">Runs</h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!cells && !error && <Loading label="Loading the runs" />}
      {cells && (
        <ScrollPanel label="Runs">
          <table className="grid">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">State</th>
                <th scope="col">Arm</th>
                <th scope="col">Environment</th>
                {paths.map((path) => (
                  <th key={path} scope="col" className="right">
                    {path.replace(/^config\./, '')}
                  </th>
                ))}
                <th scope="col" className="right">
                  Seed
                </th>
                <th scope="col" className="right">
                  Agent steps
                </th>
                <th scope="col" className="right">
                  Training score
                </th>
              </tr>
            </thead>
            <tbody>
              {cells.map((cell) => (
                <tr key={cell.number}>
                  <td>
                    {cell.run ? (
                      <Link to="/runs/$runId" params={{ runId: cell.run }}>
                        {cell.name}
                      </Link>
                    ) : (
                      <span className="muted">{cell.error ?? 'none'}</span>
                    )}
                    {cell.reused && <span className="muted"> reused</span>}
                  </td>
                  <td>
                    <CellState state={wordOf(cell.state, study.state === 'running')} />
                  </td>
                  <td style={{ minWidth: '16ch' }}>{cell.arm}</td>
                  <td className="nowrap">{shortEnvironmentName(cell.environment)}</td>
                  {paths.map((path) => (
                    <td key={path} className="right num">
                      {formatValue(cell.settings[path])}
                    </td>
                  ))}
                  <td className="right num">{cell.seed}</td>
                  <td className="right num">{formatCount(cell.agent_steps)}</td>
                  <td className="right num">{formatScore(cell.score)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
      <ShowMore query={query} />
    </section>
  );
}

type RunState = (typeof STATES)[number];

const isRunState = (state: string): state is RunState => STATES.some((known) => known === state);

function CellState({ state }: { state: string }) {
  return isRunState(state) ? <StateBadge state={state} /> : <span className="muted">{state}</span>;
}
