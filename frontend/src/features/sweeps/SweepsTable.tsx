import { Link } from '@tanstack/react-router';
import type { Sweep } from '@/api/sweeps';
import { ProgressBar } from '@/components/ProgressBar';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import classes from './sweeps.module.css';
import { configurationCount, progressOf, runsByState, SweepState } from './SweepState';

/** Sweeps, latest first. */
export function SweepsTable({ sweeps }: { sweeps: readonly Sweep[] }) {
  return (
    <ScrollPanel label="Sweeps">
      <table className="grid">
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th>Algorithm</th>
            <th>Environment</th>
            <th>Configurations</th>
            <th>Progress</th>
            <th>Runs</th>
            <th className="right">Age</th>
          </tr>
        </thead>
        <tbody>
          {sweeps.map((sweep) => {
            const progress = progressOf(sweep);
            return (
              <tr key={sweep.id}>
                <td className={classes.name}>
                  <Link to="/sweeps/$sweepId" params={{ sweepId: sweep.id }} className="whole">
                    {sweep.name}
                  </Link>
                </td>
                <td>
                  <SweepState sweep={sweep} />
                </td>
                <td>{sweep.algorithm}</td>
                <td className="nowrap" title={sweep.environment}>
                  {shortEnvironmentName(sweep.environment)}
                </td>
                <td className="nowrap">{configurationCount(sweep)}</td>
                <td className="nowrap" title={progress.text}>
                  <ProgressBar fraction={progress.fraction} label={`Progress of ${sweep.name}`} />
                </td>
                <td className={classes.runs}>{runsByState(sweep)}</td>
                <td className="right">
                  <RelativeTime at={sweep.created_at} short />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
