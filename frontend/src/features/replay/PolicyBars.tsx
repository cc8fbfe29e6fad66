import classes from './replay.module.css';

type Props = { names: readonly string[]; policy: readonly (number | null)[]; chosen: number | undefined };

/** How likely each action was, the chosen one marked. */
export function PolicyBars({ names, policy, chosen }: Props) {
  return (
    <ul className={classes.bars} aria-label="Policy: probability of each action">
      {names.map((name, action) => (
        <li key={name} data-chosen={action === chosen || undefined}>
          <span className="ellipsis">
            {name.toLowerCase()}
            {action === chosen && <span className="visually-hidden"> (chosen)</span>}
          </span>
          <span className={classes.bar}>
            <span style={{ transform: `scaleX(${policy[action] ?? 0})` }} />
          </span>
          <span className="num">{((policy[action] ?? 0) * 100).toFixed(0)}%</span>
        </li>
      ))}
    </ul>
  );
}
