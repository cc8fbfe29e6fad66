import { formatCount, formatInteger, formatNumber } from '@/lib/format';
import classes from './Chart.module.css';
import { Swatch } from './lineStyles';
import type { Entry } from './readout';

type Props = {
  /** Such as "Agent steps 1,000". */
  heading: string;
  entries: readonly Entry[];
  /** How many entries there is room for. */
  room: number;
  /** Above the chart, where there is no room below. */
  above: boolean;
  percent: boolean;
};

/** The values at the pointer's x, highest first, outside the plot. */
export function Readout({ heading, entries, room, above, percent }: Props) {
  const format = (value: number | null): string =>
    percent && value !== null ? `${formatNumber(100 * value)}\u00a0%` : formatNumber(value);
  const shown = entries.length > room ? entries.slice(0, room - 1) : entries;
  return (
    <div className={classes.readout} data-above={above || undefined} role="presentation">
      <div className="muted">{heading}</div>
      <ul>
        {shown.map(({ name, colour, symbol, value, details, note }, index) => (
          <li key={`${name} ${index}`}>
            <Swatch {...(colour && { colour })} {...(symbol && { symbol })} />
            <span className="grow ellipsis">{name}</span>
            {value !== null && <span className="num">{format(value)}</span>}
            {details && details[2] > 1 && (
              <span className="num muted nowrap">
                {format(details[0])} to {format(details[1])}, n = {formatCount(details[2])}
              </span>
            )}
            {note && <span className="muted nowrap">{note}</span>}
          </li>
        ))}
        {shown.length < entries.length && (
          <li className="muted">and {formatInteger(entries.length - shown.length)} more</li>
        )}
      </ul>
    </div>
  );
}
