import type { Comparison } from '@/api/comparisons';
import { ScrollPanel } from '@/components/ScrollPanel';
import classes from './compare.module.css';
import { formatEstimate, verdict } from './estimates';
import { Interval } from './Interval';

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

/** How likely a run of one setting beats one of another. */
export function Improvements({ comparison }: { comparison: Comparison }) {
  const names = new Map(comparison.groups.map(({ id, name }) => [id, name]));
  return (
    <ScrollPanel label="Which beats which" className={classes.scroll}>
      <table className="grid">
        <thead>
          <tr>
            <th>A run of</th>
            <th>beats one of</th>
            <th>with probability [95 %]</th>
            <th aria-hidden="true" />
            <th>so the first is</th>
          </tr>
        </thead>
        <tbody>
          {comparison.improvements.map(({ a, b, probability }) => (
            <tr key={`${a} ${b}`}>
              <td>{names.get(a)}</td>
              <td>{names.get(b)}</td>
              <td className="num nowrap">{formatEstimate(probability, percent)}</td>
              <td style={{ width: '30%' }}>
                <Interval estimate={probability} from={0} to={1} mark={0.5} colour="var(--accent)" />
              </td>
              <td className="nowrap">{verdict(probability)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
