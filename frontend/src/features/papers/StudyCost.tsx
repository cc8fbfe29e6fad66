import type { StudyEstimate } from '@/api/studies';
import { formatBytes, formatCoarseDuration, formatCount, formatInteger, plural } from '@/lib/format';
import classes from './papers.module.css';

/** What a study costs before it starts. */
export function StudyCost({ estimate }: { estimate: StudyEstimate }) {
  const { n_runs, n_reused, agent_steps, time_s, minutes_on_two_cores, memory_bytes, processes } = estimate;
  const { disk_bytes, slots, unmeasured, warnings } = estimate;
  const unknown = unmeasured.length > 0 ? 'not measured here yet' : 'not known: by score';
  const measured = time_s === null ? unknown : `about ${formatCoarseDuration(time_s)}`;
  return (
    <>
      {warnings.map((warning) => (
        <div key={warning} role="note" className={classes.warning}>
          {warning}.
        </div>
      ))}
      <dl className={classes.cost} aria-label="Cost">
        <div>
          <dt>Runs</dt>
          <dd>
            <span className="num">{formatInteger(n_runs)}</span>
            {n_reused > 0 && <span className="muted"> ({formatInteger(n_reused)} exist)</span>}
          </dd>
        </div>
        <div>
          <dt>Agent steps</dt>
          <dd className="num">
            {agent_steps === null ? (time_s === null ? 'not known' : 'by time') : formatCount(agent_steps)}
          </dd>
        </div>
        <div>
          <dt>Time on these hosts</dt>
          <dd>
            {measured}
            <div className="muted">
              {minutes_on_two_cores === null
                ? `${formatInteger(slots)} at a time`
                : `${minutes_on_two_cores < 0.5 ? 'under 1' : `about ${formatInteger(minutes_on_two_cores)}`} min on two idle cores`}
            </div>
          </dd>
        </div>
        <div>
          <dt>A run at most</dt>
          <dd>
            <span className="num">{formatBytes(memory_bytes)}</span> of memory
            <div className="muted">{plural(processes, 'process', 'processes')}</div>
          </dd>
        </div>
        <div>
          <dt>Disk</dt>
          <dd className="num">{formatBytes(disk_bytes)}</dd>
        </div>
      </dl>
    </>
  );
}
