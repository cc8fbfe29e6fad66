import { DASH, formatNumber } from '@/lib/format';
import classes from './replay.module.css';

type Numbers = readonly (number | null)[];

type BarProps = { name: string; fraction: number; text: string; selected: boolean };

/** One action of a list, with a bar; the action that was taken is marked. */
function ActionBar({ name, fraction, text, selected }: BarProps) {
  return (
    <li data-selected={selected || undefined}>
      <span className="ellipsis" title={name}>
        {name}
        {selected && <span className="visually-hidden"> (selected)</span>}
      </span>
      <span className={classes.bar}>
        <span style={{ transform: `scaleX(${fraction})` }} />
      </span>
      <span className="num">{text}</span>
    </li>
  );
}

type PolicyProps = { names: readonly string[]; policy: Numbers; selected: number | undefined };

/** The probability of each action. */
export function PolicyBars({ names, policy, selected }: PolicyProps) {
  return (
    <ul className={classes.bars} aria-label="Policy: probability of each action">
      {names.map((name, action) => (
        <ActionBar
          key={name}
          name={name}
          fraction={policy[action] ?? 0}
          text={`${((policy[action] ?? 0) * 100).toFixed(0)}%`}
          selected={action === selected}
        />
      ))}
    </ul>
  );
}

type NamesProps = { names: readonly string[]; selected: number | undefined };

/** The actions, where nothing but the one that was taken is known. */
export function ActionNames({ names, selected }: NamesProps) {
  return (
    <ul className={classes.bars} aria-label="Action">
      {names.map((name, action) => (
        <ActionBar
          key={name}
          name={name}
          fraction={action === selected ? 1 : 0}
          text=""
          selected={action === selected}
        />
      ))}
    </ul>
  );
}

type QProps = {
  names: readonly string[];
  q: Numbers;
  /** The smallest and the largest Q of the episode: the ends of the bars. */
  range: readonly [number, number];
  selected: number | undefined;
};

/** The smallest and the largest finite Q of an episode. */
export function rangeOfQ(steps: readonly Numbers[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const values of steps) {
    for (const q of values) {
      if (q === null) continue;
      low = Math.min(low, q);
      high = Math.max(high, q);
    }
  }
  return [low, high];
}

/** The Q value of each action. */
export function QBars({ names, q, range: [low, high], selected }: QProps) {
  const fraction = (value: number | null | undefined): number =>
    value === null || value === undefined || high <= low ? 0 : (value - low) / (high - low);
  return (
    <ul className={classes.bars} aria-label="Q value of each action">
      {names.map((name, action) => (
        <ActionBar
          key={name}
          name={name}
          fraction={fraction(q[action])}
          text={formatNumber(q[action] ?? NaN)}
          selected={action === selected}
        />
      ))}
      <li className={classes.note} aria-hidden="true">
        Q values; bars from {formatNumber(low)} to {formatNumber(high)}
      </li>
    </ul>
  );
}

type ComponentsProps = { names: readonly string[]; values: Numbers };

/** The components of a continuous action. */
export function ActionComponents({ names, values }: ComponentsProps) {
  return (
    <ul className={classes.bars} aria-label="Components of the action">
      {names.map((name, index) => (
        <li key={name}>
          <span className="ellipsis" title={name}>
            {name}
          </span>
          <span />
          <span className="num">{values[index]?.toFixed(2) ?? DASH}</span>
        </li>
      ))}
    </ul>
  );
}
