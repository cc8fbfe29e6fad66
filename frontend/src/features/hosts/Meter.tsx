import classes from './hosts.module.css';

type Props = { label: string; value: number | null; text: string };

/** How much of something is in use. */
export function Meter({ label, value, text }: Props) {
  return (
    <div className={classes.meter}>
      <span className="muted">{label}</span>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round((value ?? 0) * 100)}
        aria-valuetext={text}
        className={classes.bar}
      >
        <span style={{ transform: `scaleX(${Math.min(1, value ?? 0)})` }} />
      </span>
      <span className="num">{value === null ? 'not reported' : text}</span>
    </div>
  );
}
