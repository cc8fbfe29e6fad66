import type { CSSProperties } from 'react';
import { formatCount, formatInteger, formatNumber } from '@/lib/format';
import classes from './Chart.module.css';
import { Swatch } from './lineStyles';
import type { Entry } from './readout';

type Props = {
  /** Such as "Agent steps 1,000"; not in charts without the pointer. */
  heading?: string | undefined;
  entries: readonly Entry[];
  /** The entry at the pointer. */
  nearest?: Entry | undefined;
  /** How many entries there is room for. */
  room: number;
  percent: boolean;
  style: CSSProperties;
};

/** A card with the values at the crosshair, highest first. */
export function Readout({ heading, entries, nearest, room, percent, style }: Props) {
  const format = (value: number | null): string =>
    percent && value !== null ? `${formatNumber(100 * value)}\u00a0%` : formatNumber(value);
  const shown = entries.length > room ? entries.slice(0, room - 1) : entries;
  const details = nearest?.details;
  return (
    <div className={classes.readout} role="presentation" style={style}>
      {heading !== undefined && <div className="muted">{heading}</div>}
      <ul>
        {shown.map((entry, index) => {
          const { name, colour, symbol, value, note } = entry;
          return (
            <li key={`${name} ${index}`} data-nearest={entry === nearest || undefined}>
              <Swatch
                {...(colour && { colour })}
                {...(symbol && { symbol })}
                hasLine={value !== null || !symbol}
              />
              {/* A mark has no value, and its text more to say than fits a line. What names a line is never cut. */}
              <span className={`grow ${value === null ? classes.mark : 'whole'}`}>
                {note ? `${name}, ${note}` : name}
              </span>
              {value !== null && <span className="num">{format(value)}</span>}
            </li>
          );
        })}
        {shown.length < entries.length && (
          <li className="muted">and {formatInteger(entries.length - shown.length)} more</li>
        )}
      </ul>
      {heading !== undefined && details && details[2] > 1 && (
        <div className="num muted">
          {format(details[0])} to {format(details[1])}, n = {formatCount(details[2])}
        </div>
      )}
    </div>
  );
}
