import { DASH } from '@/lib/format';
import classes from './replay.module.css';

type Props = { names: readonly string[]; numbers: readonly (number | null)[] };

/** What was done, where an action is numbers rather than one of several. */
export function ActionNumbers({ names, numbers }: Props) {
  return (
    <ul className={classes.bars} aria-label="Action: its numbers">
      {names.map((name, index) => (
        <li key={name}>
          <span className="ellipsis">{name.toLowerCase()}</span>
          <span />
          <span className="num">{numbers[index]?.toFixed(2) ?? DASH}</span>
        </li>
      ))}
    </ul>
  );
}
