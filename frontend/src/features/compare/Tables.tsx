import type { Run } from '@/api/runs';
import { RunName } from '@/components/RunName';
import { StateMark } from '@/components/StateMark';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Empty } from '@/components/feedback';
import { DASH, formatCount, formatDuration, formatScore, formatSetting } from '@/lib/format';
import classes from './compare.module.css';
import { differencesOf } from './differences';

/** How far each run came. */
export function ScoresTable({ runs }: { runs: readonly Run[] }) {
  return (
    <ScrollPanel label="Each run" className={classes.scroll}>
      <table className="grid">
        <thead>
          <tr>
            <th>Run</th>
            <th>State</th>
            <th className="right">Seed</th>
            <th className="right">Agent steps</th>
            <th className="right">Training time</th>
            <th className="right">Agent steps/s, mean</th>
            <th className="right">Score</th>
            <th className="right">Best return</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              <td>{run.name}</td>
              <td>
                <StateMark state={run.state} reason={run.state_reason} />
              </td>
              <td className="right num">{run.seed}</td>
              <td className="right num">{formatCount(run.agent_steps)}</td>
              <td className="right num">{formatDuration(run.wall_time_s)}</td>
              <td className="right num">
                {formatCount(run.wall_time_s ? run.agent_steps / run.wall_time_s : null)}
              </td>
              <td className="right num">{formatScore(run.score)}</td>
              <td className="right num">{formatScore(run.best_return)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}

/** The settings in which the runs differ, and no others. */
export function DifferencesTable({ runs }: { runs: readonly Run[] }) {
  const differences = differencesOf(runs);
  if (differences.length === 0) return <Empty>These runs have the same settings.</Empty>;
  return (
    <ScrollPanel label="What differs" className={classes.scroll}>
      <table className="grid">
        <thead>
          <tr>
            <th>Setting</th>
            {runs.map((run) => (
              <th key={run.id} className={`right ${classes.run}`} title={run.name} aria-label={run.name}>
                <RunName name={run.name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {differences.map(({ path, values }) => (
            <tr key={path}>
              <td className="num">{path}</td>
              {values.map((value, index) => (
                <td key={runs[index]?.id ?? index} className="right num">
                  {value === undefined ? DASH : formatSetting(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
