import { formatNumber } from '@/lib/format';
import classes from './replay.module.css';

type Numbers = readonly (number | null)[];
type Props = {
  names: readonly string[];
  q: Numbers;
  /** Least and greatest Q of the episode: the bars' ends. */
  range: readonly [number, number];
  chosen: number | undefined;
};

/** The least and the greatest Q of an episode. */
export function rangeOfQ(all: readonly Numbers[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const each of all) {
    for (const q of each) {
      if (q === null) continue;
      low = Math.min(low, q);
      high = Math.max(high, q);
    }
  }
  return [low, high];
}

/** What the agent expected of each action, the chosen one marked. */
export function QBars({ names, q, range: [low, high], chosen }: Props) {
  const share = (value: number | null | undefined): number =>
    value === null || value === undefined || high <= low ? 0 : (value - low) / (high - low);
  return (
    <ul className={classes.bars} aria-label="Q: what the agent expected of each action">
      {names.map((name, action) => (
        <li key={name} data-chosen={action === chosen || undefined}>
          <span className="ellipsis">
            {name.toLowerCase()}
            {action === chosen && <span className="visually-hidden"> (chosen)</span>}
          </span>
          <span className={classes.bar}>
            <span style={{ transform: `scaleX(${share(q[action])})` }} />
          </span>
          <span className="num">{formatNumber(q[action] ?? NaN)}</span>
        </li>
      ))}
      <li className={classes.note} aria-hidden="true">
        Q of each action; a bar goes from {formatNumber(low)} to {formatNumber(high)}
      </li>
    </ul>
  );
}
